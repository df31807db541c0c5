#pragma once

#include "simd.h"

namespace {

constexpr int NR = 2 * LANES; // columns of a tile, and of a panel of weights

} // namespace
