#include "ranksvm.h"

static gmo_status check(const gmo_ranksvm_problem *p) {
    if (p->n_samples < 1 || p->n_labels < 1 || p->n_groups < 1 || p->max_epochs < 0 || !(p->tolerance >= 0))
        return GMO_ERR_ARGUMENT;
    if (p->n_samples > GMO_MAX_ROWS || p->n_labels > GMO_MAX_ROWS)
        return GMO_ERR_SIZE;
    for (int32_t g = 0; g < p->n_groups; g++)
        if (p->group_start[g] > p->group_start[g + 1])
            return GMO_ERR_ARGUMENT;
    if (p->group_start[0] != 0 || p->group_start[p->n_groups] != p->n_labels || (p->gram && p->features))
        return GMO_ERR_ARGUMENT;
    return GMO_OK;
}

gmo_status gmo_ranksvm_create(const gmo_ranksvm_problem *problem, gmo_ranksvm **out) {
    *out = NULL;
    GMO_TRY(check(problem));
    gmo_ranksvm *machine = gmo_alloc_zero(1, sizeof *machine);
    if (!machine)
        return GMO_ERR_MEMORY;
    gmo_qp_problem qp = {
        .n = problem->n_samples,
        .q = problem->n_labels,
        .n_groups = problem->n_groups,
        .group_start = problem->group_start,
        .relevant = problem->relevant,
        .cost = problem->cost,
        .diagonal = problem->diagonal,
        .share = problem->share,
        .with_origin = problem->with_origin,
        .origin = problem->share ? problem->origin : 0,
        .tolerance = problem->tolerance,
        .max_epochs = problem->max_epochs,
        .seed = problem->seed,
    };
    gmo_status status = gmo_qp_init(&machine->qp, &qp, problem->gram, problem->features, problem->cache_bytes);
    if (status != GMO_OK) {
        free(machine);
        return status;
    }
    *out = machine;
    return GMO_OK;
}

gmo_status gmo_ranksvm_run(gmo_ranksvm *machine, int64_t n_visits) { return gmo_qp_run(&machine->qp, n_visits); }

void gmo_ranksvm_put(gmo_ranksvm *machine, const double *rows) {
    gmo_qp *qp = &machine->qp;
    for (int64_t i = 0; i < qp->n_wanted; i++)
        gmo_rows_put(&qp->scores.rows, qp->wanted[i], rows + i * qp->problem.n);
    qp->n_wanted = 0;
}

void gmo_ranksvm_look(const gmo_ranksvm *machine, gmo_ranksvm_state *out) {
    const gmo_qp *qp = &machine->qp;
    *out = (gmo_ranksvm_state){
        .primal = qp->primal,
        .dual = qp->dual,
        .gap = gmo_qp_gap(qp),
        .n_epochs = qp->epoch,
        .n_wanted = qp->n_wanted,
        .wanted = qp->wanted,
        .finished = qp->phase == GMO_QP_DONE,
        .indefinite = qp->indefinite,
        .unbounded = qp->unbounded,
    };
}

void gmo_ranksvm_solution(const gmo_ranksvm *machine, double *dual_coef, double *bias) {
    gmo_qp_solution(&machine->qp, dual_coef, bias);
}

void gmo_ranksvm_free(gmo_ranksvm *machine) {
    if (machine)
        gmo_qp_free(&machine->qp);
    free(machine);
}
