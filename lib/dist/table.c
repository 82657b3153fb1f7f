/* table.c - every family and every op of this folder. What is not listed here does not exist for the tests. */
#include "dist/dist.h"

/* clang-format off */
#define FAMILIES(FAMILY)                                                                  \
    FAMILY(categorical) FAMILY(bernoulli) FAMILY(bernoulli_vector) FAMILY(normal)         \
    FAMILY(uniform) FAMILY(gumbel) FAMILY(concrete)                                       \
    FAMILY(exponential) FAMILY(log_normal) FAMILY(laplace) FAMILY(half_normal)            \
    FAMILY(gumbel_scale) FAMILY(truncated_normal) FAMILY(gamma) FAMILY(inverse_gamma)     \
    FAMILY(beta) FAMILY(student_t)                                                        \
    FAMILY(poisson) FAMILY(geometric) FAMILY(binomial) FAMILY(negative_binomial)          \
    FAMILY(dirichlet) FAMILY(von_mises) FAMILY(multivariate_normal) FAMILY(categoricals)  \
    FAMILY(multinomial) FAMILY(delta) FAMILY(mixture)

#define OPS(OP)                                                                           \
    OP(defend) OP(defend_at) OP(conditional_gumbel)                                       \
    OP(log_sigmoids) OP(bernoulli_draw) OP(bernoulli_density) OP(bernoulli_defended)      \
    OP(normal_draw) OP(normal_density) OP(uniform_draw) OP(uniform_density)               \
    OP(gumbel_draw) OP(gumbel_density) OP(concrete_density)                               \
    OP(stick_logits) OP(stick_break) OP(smooth_draw) OP(smooth_density)                   \
    OP(exponential_draw) OP(exponential_density) OP(log_normal_draw)                      \
    OP(log_normal_density) OP(laplace_draw) OP(laplace_density) OP(half_normal_draw)      \
    OP(half_normal_density) OP(gumbel_scale_draw) OP(gumbel_scale_density)                \
    OP(truncated_normal_draw) OP(truncated_normal_density)                                \
    OP(gamma_draw) OP(gamma_density) OP(inverse_gamma_draw) OP(inverse_gamma_density)     \
    OP(beta_draw) OP(beta_density) OP(student_t_draw) OP(student_t_density)               \
    OP(count_reach) OP(count_table) OP(count_value) OP(poisson_density)                   \
    OP(geometric_density) OP(binomial_density) OP(negative_binomial_density)              \
    OP(dirichlet_draw) OP(dirichlet_density) OP(von_mises_draw) OP(von_mises_density)     \
    OP(multivariate_normal_draw) OP(multivariate_normal_density)                          \
    OP(multivariate_normal_pull) OP(categoricals_prepare) OP(categoricals_draw)           \
    OP(categoricals_density) OP(categoricals_defended) OP(multinomial_logit)              \
    OP(multinomial_density) OP(delta_density) OP(support_fit)                             \
    OP(exponential_density_tangent) OP(log_normal_density_tangent)                        \
    OP(laplace_density_tangent) OP(half_normal_density_tangent)                           \
    OP(gumbel_scale_density_tangent) OP(truncated_normal_density_tangent)                 \
    OP(gamma_density_tangent) OP(inverse_gamma_density_tangent) OP(beta_density_tangent)  \
    OP(student_t_density_tangent) OP(poisson_density_tangent)                             \
    OP(geometric_density_tangent) OP(binomial_density_tangent)                            \
    OP(negative_binomial_density_tangent) OP(von_mises_density_tangent)                   \
    OP(delta_density_tangent)

#define DECLARE(name) extern const rws_family rws_##name##_family;
#define POINTER(name) &rws_##name##_family,
/* clang-format on */

FAMILIES(DECLARE)
const rws_family *const rws_families[] = {FAMILIES(POINTER) NULL};

RWS_OP_TABLE(rws_dist_ops, OPS);
