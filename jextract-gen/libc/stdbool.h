// bool of C11; see ../README.md.
#pragma once

#define bool  _Bool
#define true  1
#define false 0
