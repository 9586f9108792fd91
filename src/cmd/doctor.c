/* See doctor.h: how a fact gets into both forms of the report. */
#include "cmd/doctor.h"

#include <string.h>

#include "base/json.h"

void doctor_tell(doctor_report *r, const char *key, const char *value)
{
    base_buf_printf(&r->text, "%-10s %s\n", key, value);
    base_buf_putc(&r->json, r->json.len ? ',' : '{');
    base_json_put_str(&r->json, key, strlen(key));
    base_buf_putc(&r->json, ':');
    base_json_put_str(&r->json, value, strlen(value));
}

void doctor_tell_buf(doctor_report *r, const char *key, base_buf *value)
{
    while (value->len && value->data[value->len - 1] == '\n') value->data[--value->len] = '\0';
    doctor_tell(r, key, value->len ? value->data : "none");
    base_buf_free(value);
}
