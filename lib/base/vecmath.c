#include "base/vecmath.h"

const float rws_exp_range[2] = {-88, 88.7f};
