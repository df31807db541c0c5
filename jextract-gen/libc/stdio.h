// FILE is only ever passed by pointer; see ../README.md.
#pragma once

typedef struct libc_file FILE;
