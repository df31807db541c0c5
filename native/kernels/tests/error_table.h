#pragma once

// A markdown table of the largest errors against double precision, a row a shape.

#include "support.h"

#include <vector>

void table_head(const char * family);
void table_row(const char * shape_format, const std::vector<int64_t> & extents, const test::error & e);

void attention_errors();
void gemm_f32_errors();
void quantize_i8_errors();
void gemm_i8_errors();
void rows_errors();
void make_row_errors();
void rope_errors();
