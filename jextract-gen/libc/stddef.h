// size_t as every 64-bit target has it; see ../README.md.
#pragma once

typedef unsigned long long size_t;
typedef long long          ptrdiff_t;

#define NULL ((void *) 0)
#define offsetof(type, member) __builtin_offsetof(type, member)
