/* The public face of the ranking machine; gbdtmo.h declares it. */
#ifndef GMO_RANKSVM_H
#define GMO_RANKSVM_H

#include "qp.h"

struct gmo_ranksvm {
    gmo_qp qp;
};

#endif
