/* Prediction from values, without bins (gmo_predictor_pack and gmo_predictor_add are public, see gbdtmo.h). The plain
 * version, on bins and a node at a time, is gmo_forest_predict of tree.h. */
#ifndef GMO_PREDICT_H
#define GMO_PREDICT_H

#include "common.h"

#endif
