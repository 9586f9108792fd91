/*
 * `kvist doctor`: what this machine has and what is in force, as a list of facts; --json gives the same as
 * one object.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fs.h"
#include "cmd/cmd.h"
#include "code/code.h"
#include "model/ops/ops.h"
#include "cmd/options.h"
#include "cmd/doctor.h"
#ifdef KVIST_SHELL
#include "tools/tool.h"
#endif

static const char usage[] = "usage: kvist doctor [--model FILE|NAME] [--endpoint URL] [--json]\n\n"
                            "Says what this machine has and what is in force: CPU features, threads, memory, "
                            "GPU, model, grammars, sandbox, endpoint, terminal.\n";

static void tell_cpu(doctor_report *r, const common_options *common)
{
    base_buf line = {0};
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int threads = model_threads((int)common->threads);
    base_buf_printf(
        &line, "%ld core%s, %d thread%s", cores, cores == 1 ? "" : "s", threads, threads == 1 ? "" : "s");
#if defined(__x86_64__)
    /* __builtin_cpu_supports takes literals only, hence no table. */
    if (__builtin_cpu_supports("avx2")) base_buf_puts(&line, ", AVX2");
    if (__builtin_cpu_supports("avx512f")) base_buf_puts(&line, ", AVX-512");
    if (__builtin_cpu_supports("avx512vnni")) base_buf_puts(&line, " VNNI");
    if (__builtin_cpu_supports("avx512bf16")) base_buf_puts(&line, " BF16");
#endif
    doctor_tell_buf(r, "cpu", &line);
}

static void tell_memory(doctor_report *r)
{
    base_buf info = {0}, line = {0};
    unsigned long total = 0, available = 0;
    if (!base_fs_read("/proc/meminfo", 1 << 16, &info, NULL)) {
        const char *at = strstr(info.data, "MemTotal:");
        if (at) sscanf(at, "MemTotal: %lu", &total);
        at = strstr(info.data, "MemAvailable:");
        if (at) sscanf(at, "MemAvailable: %lu", &available);
    }
    base_buf_printf(&line, "%.1f GiB, %.1f available", (double)total / 1048576, (double)available / 1048576);
    base_buf_clear(&info);
    if (!base_fs_read("/sys/kernel/mm/transparent_hugepage/enabled", 256, &info, NULL) && info.len)
        base_buf_printf(&line, "; huge pages %.*s", (int)strcspn(info.data, "\n"), info.data);
    base_buf_free(&info);
    doctor_tell_buf(r, "memory", &line);
}

static void tell_gpu(doctor_report *r)
{
#ifdef KVIST_CUDA
    char text[400];
    base_err err;
    if (!cuda_ops_describe(text, sizeof text, &err)) {
        doctor_tell(r, "gpu", text);
        return;
    }
    snprintf(text, sizeof text, "none: %.350s; the CPU computes", err.msg);
    doctor_tell(r, "gpu", text);
#else
    doctor_tell(r, "gpu",
        base_fs_exists("/dev/nvidiactl") ? "an NVIDIA device is present; this build computes on the CPU"
                                         : "none; the CPU computes");
#endif
}

static void tell_model(doctor_report *r, const common_options *options)
{
    char *path;
    base_err err;
    if (options_model_path(options, &path, &err)) {
        doctor_tell(r, "model", err.msg);
        return;
    }
    doctor_tell(r, "model", path);
    free(path);
}

static void tell_grammars(doctor_report *r)
{
    const code_grammar_info *infos;
    code_grammars *g = code_grammars_open();
    base_buf line = {0};
    uint32_t n = code_grammars_list(g, &infos), n_found = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!infos[i].path) continue;
        base_buf_printf(&line, "%s%s", n_found++ ? " " : "", infos[i].language);
    }
    if (!n_found)
        base_buf_puts(&line, "none found: definitions are found lexically (`kvist-fetch grammars` or "
                             "scripts/run fetches grammars)");
    doctor_tell_buf(r, "grammars", &line);
    code_grammars_close(g);
}

static void tell_terminal(doctor_report *r)
{
    struct winsize size;
    base_buf line = {0};
    const char *term = getenv("TERM");
    if (!isatty(STDOUT_FILENO))
        base_buf_puts(&line, "none (use -p)");
    else if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        base_buf_printf(
            &line, "%s, %d columns x %d rows", term ? term : "(TERM unset)", size.ws_col, size.ws_row);
    doctor_tell_buf(r, "terminal", &line);
}

int cmd_doctor(int argc, char **argv)
{
    bool json = false;
    common_options common = COMMON_OPTIONS_DEFAULTS;
#ifdef KVIST_SHELL
    endpoint_words endpoint = ENDPOINT_WORDS_DEFAULTS;
    const option_row own[] = {
        {"--json", OPTION_FLAG, &json, NULL, "one object"}, ENDPOINT_OPTION_ROWS(&endpoint), {0}};
#else
    const option_row own[] = {{"--json", OPTION_FLAG, &json, NULL, "one object"}, {0}};
#endif
    int status;
    if (!cmd_begin(argc, argv, &common, own, &(cmd_words){.usage = usage, .is_configured = true}, &status))
        return status;
    doctor_report r = {0};
    doctor_tell(&r, "kvist", KVIST_VERSION);
    tell_cpu(&r, &common);
    tell_memory(&r);
    tell_gpu(&r);
    tell_model(&r, &common);
    tell_grammars(&r);
#ifdef KVIST_SHELL
    base_buf sandbox = {0};
    if (!tool_sandbox_describe(&sandbox)) base_buf_puts(&sandbox, "NOT confined: --mode all is refused");
    doctor_tell_buf(&r, "sandbox", &sandbox);
    /* As the shell reads them: a configured model is a local one, unless the endpoint is configured too. */
    endpoint.is_typed = options_are_given(argc, argv, "--endpoint");
    const bool is_served = !endpoint.is_typed || options_are_given(argc, argv, "--model");
    const bool is_wait_given = options_are_given(argc, argv, "--endpoint-wait");
    status = doctor_tell_endpoint(&r, &endpoint, is_wait_given, is_served ? common.model : NULL);
#endif
    tell_terminal(&r);
    if (json)
        printf("%s}\n", r.json.data);
    else
        fputs(r.text.data, stdout);
    base_buf_free(&r.text);
    base_buf_free(&r.json);
    return status;
}
