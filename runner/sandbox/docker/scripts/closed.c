/* Starts PROGRAM, an interpreter of ours, in an environment of ours.

An image names its own variables, and the loader and the C library obey many of them (LD_*, GLIBC_TUNABLES, LOCPATH and
more) before any line of ours runs. So each gets a `+` before its name, where nobody looks for it, and the interpreter
sees one variable beside them: LC_ALL=C, in which no file of a locale is looked for. A program of ours takes the `+` off
again for commands of the image.

There is no C library in this program, since that would read the variables itself. */

#if defined(__x86_64__)
enum { EXECVE = 59, EXIT = 60, MMAP = 9 };
__asm__(".globl _start\n_start: mov %rsp, %rdi\n and $-16, %rsp\n call start\n");

static long call(long number, long a, long b, long c, long d, long e, long f) {
    long result;
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
enum { EXECVE = 221, EXIT = 93, MMAP = 222 };
__asm__(".globl _start\n_start: mov x0, sp\n bl start\n");

static long call(long number, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d, x4 __asm__("x4") = e, x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#endif

enum { READ_AND_WRITE = 3, PRIVATE_AND_ANONYMOUS = 34, CANNOT_START = 126 };

/* `stack` is what the kernel gives a new program: argc, argv, 0, envp, 0. */
void start(char **stack) {
    long arguments = (long)stack[0], variables = 0, bytes = 0;
    char **argv = stack + 1, **envp = argv + arguments + 1;
    for (; envp[variables]; variables++)
        for (char *at = envp[variables]; *at++;) bytes++;
    bytes += 2 * variables + sizeof(char *) * (arguments + variables + 5);
    char **room = (char **)call(MMAP, 0, bytes, READ_AND_WRITE, PRIVATE_AND_ANONYMOUS, -1, 0);
    if ((unsigned long)room > -4096UL) call(EXIT, CANNOT_START, 0, 0, 0, 0, 0);

    char **given = room, **environment = room + arguments + 3;
    *given++ = NAME; /* whatever it was called by: it looks for its library beside it */
    *given++ = "-IS"; /* neither the folder it is started in nor packages */
    for (long at = 1; at < arguments; at++) *given++ = argv[at];
    *given = 0;

    char *text = (char *)(environment + variables + 2);
    char **variable = environment;
    *variable++ = "LC_ALL=C";
    for (long at = 0; at < variables; at++) {
        *variable++ = text;
        *text++ = '+';
        for (char *from = envp[at]; (*text++ = *from++);) {}
    }
    *variable = 0;
    call(EXECVE, (long)PROGRAM, (long)room, (long)environment, 0, 0, 0);
    call(EXIT, CANNOT_START, 0, 0, 0, 0, 0);
}
