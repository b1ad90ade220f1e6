/* bounds.h - the accuracy the documentation promises, in ulp: {f32, f64}. Included by judge.c only. */
static const judged functions[] = {
    {"rsqrt", ATLAS_OP_rsqrt, ref_rsqrt, 1, {1.0, 1.0}},       {"exp", ATLAS_OP_exp, ref_exp, 1, {1.0, 1.0}},
    {"exp2", ATLAS_OP_exp2, ref_exp2, 1, {1.0, 1.0}},          {"expm1", ATLAS_OP_expm1, ref_expm1, 1, {1.0, 1.0}},
    {"log", ATLAS_OP_log, ref_log, 1, {1.0, 1.0}},             {"log2", ATLAS_OP_log2, ref_log2, 1, {1.0, 1.0}},
    {"log10", ATLAS_OP_log10, ref_log10, 1, {1.0, 1.0}},       {"log1p", ATLAS_OP_log1p, ref_log1p, 1, {1.0, 1.0}},
    {"pow", ATLAS_OP_pow, ref_pow, 2, {1.0, 1.0}},             {"sin", ATLAS_OP_sin, ref_sin, 1, {1.0, 1.0}},
    {"cos", ATLAS_OP_cos, ref_cos, 1, {1.0, 1.0}},             {"tan", ATLAS_OP_tan, ref_tan, 1, {1.0, 1.0}},
    {"asin", ATLAS_OP_asin, ref_asin, 1, {1.0, 1.0}},          {"acos", ATLAS_OP_acos, ref_acos, 1, {1.0, 1.0}},
    {"atan", ATLAS_OP_atan, ref_atan, 1, {1.0, 1.0}},          {"atan2", ATLAS_OP_atan2, ref_atan2, 2, {1.0, 1.0}},
    {"sinh", ATLAS_OP_sinh, ref_sinh, 1, {1.0, 1.0}},          {"cosh", ATLAS_OP_cosh, ref_cosh, 1, {1.0, 1.0}},
    {"tanh", ATLAS_OP_tanh, ref_tanh, 1, {1.0, 1.0}},          {"sigmoid", ATLAS_OP_sigmoid, ref_sigmoid, 1, {1.0, 1.0}},
    {"erf", ATLAS_OP_erf, ref_erf, 1, {1.0, 1.0}},             {"erfc", ATLAS_OP_erfc, ref_erfc, 1, {1.5, 1.5}},
    {"gelu", ATLAS_OP_gelu, ref_gelu, 1, {2.0, 2.0}},          {"gelu.tanh", ATLAS_OP_gelu_tanh, ref_gelu_tanh, 1, {2.0, 2.0}},
    {"fmod", ATLAS_OP_fmod, ref_fmod, 2, {0.0, 0.0}},
};
