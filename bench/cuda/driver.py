"""The CUDA driver by ctypes, as far as the benchmark needs it: the clock of the GPU, and the plainest kernels there are, to know
what the card can do."""

import ctypes as c

BLOCK_BYTES = 1 << 14  # that a block of 256 threads of the kernels below moves: four times 16 bytes a thread
CLOCK, PROCESSORS, MEMORY_CLOCK, BUS_WIDTH = 13, 16, 36, 37  # CUdevice_attribute: kHz, how many, kHz, bits
F32_UNITS = 128  # of a multiprocessor, since compute capability 8.6


class DriverError(Exception):
    """A call that failed, and its number."""


def kernel_text(inputs: int) -> str:
    """PTX of y = a (one input) or y = a + b (two), 16 bytes an access, no bounds looked at."""
    lines = [".version 6.4", ".target sm_75", ".address_size 64", "",
             f".visible .entry plain(.param .align 8 .b8 arguments[{8 * (inputs + 1)}])", ".maxntid 256, 1, 1", "{",
             "\t.reg .b32 %r<40>;", "\t.reg .b64 %d<40>;", "\tmov.u32 %r0, %ctaid.x;", "\tmov.u32 %r1, %tid.x;",
             "\tcvt.u64.u32 %d0, %r0;", "\tcvt.u64.u32 %d1, %r1;", "\tshl.b64 %d0, %d0, 14;", "\tshl.b64 %d1, %d1, 4;",
             "\tadd.s64 %d0, %d0, %d1;"]
    for array in range(inputs + 1):
        lines += [f"\tld.param.b64 %d{2 + array}, [arguments+{8 * array}];", f"\tadd.s64 %d{2 + array}, %d{2 + array}, %d0;"]
    part = [[f"%r{4 + 4 * (2 * k + i) + j}" for j in range(4)] for k in range(4) for i in range(2)]
    for k in range(4):
        for i in range(inputs):
            lines.append(f"\tld.global.v4.b32 {{{', '.join(part[2 * k + i])}}}, [%d{3 + i}+{4096 * k}];")
    for k in range(4):
        if inputs == 2:
            lines += [f"\tadd.rn.f32 {a}, {a}, {b};" for a, b in zip(part[2 * k], part[2 * k + 1])]
        lines.append(f"\tst.global.v4.b32 [%d2+{4096 * k}], {{{', '.join(part[2 * k])}}};")
    return "\n".join(lines + ["\tret;", "}", ""])


class Driver:
    """The first GPU's primary context, which the library and its peers use too, current in this thread."""

    def __init__(self):
        try:
            self.c = c.CDLL("libcuda.so.1")
        except OSError as error:
            raise DriverError(f"no CUDA driver: {error}") from None
        p, u = c.c_void_p, c.c_uint
        self.c.cuLaunchKernel.argtypes = [p, u, u, u, u, u, u, u, p, c.POINTER(p), p]
        device, context = c.c_int(), p()
        self("cuInit", 0)
        self("cuDeviceGet", c.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", c.byref(context), device)
        self("cuCtxPushCurrent_v2", context)
        self.device, self.version = device, c.c_int()
        self("cuDriverGetVersion", c.byref(self.version))
        self.first, self.last = self.event(), self.event()

    def __call__(self, name: str, *arguments) -> None:
        result = getattr(self.c, name)(*arguments)
        if result:
            raise DriverError(f"{name} failed ({result})")

    def attribute(self, number: int) -> int:
        value = c.c_int()
        self("cuDeviceGetAttribute", c.byref(value), number, self.device)
        return value.value

    def paper_rate(self) -> float:
        """GB/s: two transfers a clock, as its maker counts."""
        return 2 * self.attribute(MEMORY_CLOCK) * self.attribute(BUS_WIDTH) / 8 / 1e6

    def paper_products(self) -> float:
        """f32 operations a nanosecond, a fused product and sum counted as two."""
        return 2 * F32_UNITS * self.attribute(PROCESSORS) * self.attribute(CLOCK) / 1e6

    def name(self) -> str:
        name = c.create_string_buffer(128)
        self("cuDeviceGetName", name, 128, self.device)
        return name.value.decode()

    def stream(self) -> c.c_void_p:
        stream = c.c_void_p()
        self("cuStreamCreate", c.byref(stream), 1)
        return stream

    def wait(self, stream) -> None:
        self("cuStreamSynchronize", stream)

    def event(self) -> c.c_void_p:
        event = c.c_void_p()
        self("cuEventCreate", c.byref(event), 0)
        return event

    def time(self, stream, call, repeat: int) -> float:
        """Nanoseconds of the GPU for one of `repeat` calls that put their work on a stream."""
        milliseconds = c.c_float()
        self("cuEventRecord", self.first, stream)
        for _ in range(repeat):
            call()
        self("cuEventRecord", self.last, stream)
        self("cuEventSynchronize", self.last)
        self("cuEventElapsedTime", c.byref(milliseconds), self.first, self.last)
        return milliseconds.value * 1e6 / repeat

    def allocate(self, byte_count: int) -> int:
        address = c.c_uint64()
        self("cuMemAlloc_v2", c.byref(address), c.c_size_t(byte_count))
        return address.value

    def free(self, address: int) -> None:
        self("cuMemFree_v2", c.c_uint64(address))


class Plain:
    """A kernel of kernel_text on memory of its own."""

    def __init__(self, driver: Driver, inputs: int, byte_count: int):
        self.driver, self.blocks, self.arrays = driver, byte_count // BLOCK_BYTES, []
        self.moved = self.blocks * BLOCK_BYTES * (inputs + 1)
        self.module, self.function, self.stream = c.c_void_p(), c.c_void_p(), driver.stream()
        driver("cuModuleLoadData", c.byref(self.module), kernel_text(inputs).encode())
        driver("cuModuleGetFunction", c.byref(self.function), self.module, b"plain")
        for _ in range(inputs + 1):
            self.arrays.append(driver.allocate(byte_count))
            driver("cuMemsetD32Async", c.c_uint64(self.arrays[-1]), c.c_uint(0x3f000000), c.c_size_t(byte_count // 4), self.stream)
        self.arguments = (c.c_uint64 * (inputs + 1))(*self.arrays)
        self.parameters = (c.c_void_p * 1)(c.addressof(self.arguments))

    def call(self) -> None:
        self.driver("cuLaunchKernel", self.function, self.blocks, 1, 1, 256, 1, 1, 0, self.stream, self.parameters, None)

    def copy(self) -> None:
        """What the driver has for it."""
        self.driver("cuMemcpyDtoDAsync_v2", c.c_uint64(self.arrays[0]), c.c_uint64(self.arrays[1]),
                    c.c_size_t(self.blocks * BLOCK_BYTES), self.stream)

    def close(self) -> None:
        self.driver.wait(self.stream)
        for array in self.arrays:
            self.driver.free(array)
        self.driver("cuModuleUnload", self.module)
        self.driver("cuStreamDestroy_v2", self.stream)
