#include "kv/core/model_file.h"

#include <stdio.h>

#include "base/fs.h"

char *kv_model_file(const char *model_hash, const char *ending)
{
    char name[64];
    snprintf(name, sizeof name, "rows/%.24s.%s", model_hash, ending);
    return base_fs_home(BASE_HOME_DATA, name);
}
