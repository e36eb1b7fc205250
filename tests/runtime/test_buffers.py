"""Device memory: the allocator against a byte map, handles, copies in every direction."""

import ctypes

import numpy as np
import pytest

from vta_isa import RuntimeCallError
from vta_runtime import DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE, ReferenceDevice, Runtime
from vta_runtime.buffers import PAGE_BYTES, Allocator, is_handle

PAGES = 24


class PageMap:
    """First fit on one flag per page: what the allocator must do, the slow way."""

    def __init__(self, pages):
        self.owner = [None] * pages
        self.serial = 0

    def allocate(self, size):
        need = max(1, -(-size // PAGE_BYTES))
        for begin in range(len(self.owner) - need + 1):
            if all(owner is None for owner in self.owner[begin : begin + need]):
                self.serial += 1
                self.owner[begin : begin + need] = [self.serial] * need
                return begin
        return None

    def release(self, begin):
        serial = self.owner[begin]
        self.owner = [None if owner == serial else owner for owner in self.owner]


@pytest.mark.parametrize("seed", range(20))
def test_the_allocator_against_a_map_of_pages(seed):
    rng = np.random.default_rng(seed)
    begin = 0x1000
    fast, slow = Allocator(begin, begin + PAGES * PAGE_BYTES), PageMap(PAGES)
    live = []
    for step in range(500):
        if live and rng.random() < 0.45:
            address = live.pop(rng.integers(0, len(live)))
            fast.release(address)
            slow.release((address - begin) // PAGE_BYTES)
            continue
        size = int(rng.integers(0, 5 * PAGE_BYTES))
        page = slow.allocate(size)
        if page is None:
            with pytest.raises(RuntimeCallError, match=f"no room for {size} bytes"):
                fast.allocate(size)
        else:
            address = fast.allocate(size)
            assert address == begin + page * PAGE_BYTES, f"seed {seed}, step {step}"
            live.append(address)
        free = sum(owner is None for owner in slow.owner) * PAGE_BYTES
        assert (fast.free_bytes, fast.taken_bytes) == (free, PAGES * PAGE_BYTES - free)
    for address in live:
        fast.release(address)
    assert fast.largest_free_bytes == PAGES * PAGE_BYTES


def test_buffers_are_page_aligned_and_the_first_lies_at_0x1000(runtime):
    handles = [runtime.buffer_alloc(size) for size in (1, 0, 4096, 4097, 1)]
    addresses = [runtime.buffer(handle).address for handle in handles]
    assert addresses == [0x1000, 0x2000, 0x3000, 0x4000, 0x6000]
    assert len(set(handles)) == 5
    assert all(is_handle(handle) for handle in handles)


def test_running_out_of_memory_says_how_much_there_is(make_recorder, machine):
    runtime = Runtime(make_recorder(machine, memory_bytes=0x1000 * 8))
    handles = [runtime.buffer_alloc(4096) for _ in range(7)]
    runtime.buffer_free(handles[1])
    runtime.buffer_free(handles[3])
    message = (
        r"no room for 5000 bytes \(8192 in whole pages of 4096\); 8192 bytes are free, 4096 of "
        r"them in one piece, 20480 are allocated"
    )
    with pytest.raises(RuntimeCallError, match=message):
        runtime.buffer_alloc(5000)


def test_freed_memory_is_used_again_but_its_handle_is_not(runtime):
    first = runtime.buffer_alloc(100)
    address = runtime.buffer(first).address
    runtime.buffer_free(first)
    second = runtime.buffer_alloc(100)
    assert runtime.buffer(second).address == address
    assert second != first


def test_bad_handles_are_told_apart(runtime, make_recorder, machine):
    freed = runtime.buffer_alloc(1)
    runtime.buffer_free(freed)
    foreign = Runtime(make_recorder(machine)).buffer_alloc(1)
    for handle, message in (
        (freed, "was freed already"),
        (foreign, "belongs to another runtime"),
        (0x1000, "0x1000 is no buffer handle"),
        (0, "null handle"),
        (None, "null handle"),
    ):
        with pytest.raises(RuntimeCallError, match=f"buffer_free: .*{message}"):
            runtime.buffer_free(handle)


def test_a_negative_size_is_refused(runtime):
    with pytest.raises(RuntimeCallError, match="size = -1 bytes"):
        runtime.buffer_alloc(-1)


def test_copies_honour_offsets_in_every_direction(runtime):
    data = np.arange(64, dtype=np.uint8)
    a, b = runtime.buffer_alloc(64), runtime.buffer_alloc(64)
    runtime.buffer_copy(data, 8, a, 16, 40, HOST_TO_DEVICE)
    runtime.buffer_copy(a, 20, b, 3, 10, DEVICE_TO_DEVICE)
    back = np.full(16, 99, np.uint8)
    runtime.buffer_copy(b, 3, back, 5, 10, DEVICE_TO_HOST)
    assert back.tolist() == [99] * 5 + list(range(12, 22)) + [99]


def test_overlapping_copies_inside_a_buffer_read_before_they_write(runtime):
    a = runtime.upload(np.arange(16, dtype=np.uint8))
    runtime.buffer_copy(a, 0, a, 4, 12, DEVICE_TO_DEVICE)
    assert runtime.download(a, 16, np.uint8).tolist() == [0, 1, 2, 3, *range(12)]


def test_host_sides_may_be_addresses(runtime):
    data = np.arange(8, dtype=np.int32)
    back = np.zeros_like(data)
    a = runtime.buffer_alloc(data.nbytes)
    runtime.buffer_copy(data.ctypes.data, 0, a, 0, data.nbytes, HOST_TO_DEVICE)
    runtime.buffer_copy(a, 4, back.ctypes.data, 8, 16, DEVICE_TO_HOST)
    assert back.tolist() == [0, 0, 1, 2, 3, 4, 0, 0]


def test_arrays_of_any_shape_go_up_and_come_down(runtime):
    array = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    handle = runtime.upload(array.T)
    np.testing.assert_array_equal(runtime.download(handle, (4, 3, 2), np.int16), array.T)
    assert runtime.download(handle, (2,), np.int16, offset=44).tolist() == [11, 23]
    assert runtime.download(runtime.upload(np.empty((0, 3))), (0, 3), float).shape == (0, 3)


@pytest.mark.parametrize(
    ("copy", "message"),
    [
        ((0, "a", 0, 1, 9), "kind = 9"),
        ((0, "a", 1, 8, 1), "8 bytes from offset 1 of the target do not lie inside its 8 bytes"),
        ((0, "a", -1, 1, 1), "1 bytes from offset -1 of the target"),
        ((9, "a", 0, 8, 1), "8 bytes from offset 9 of the source array"),
        ((0, "a", 0, -1, 1), "size = -1 bytes"),
        ((0, "a", 0, 1, 0), "kind = 0; it must be 1"),
        ((0, "a", 0, 1, 4), "kind = 4"),
    ],
)
def test_copies_outside_a_side_are_refused(copy, message, runtime):
    source_offset, _, target_offset, size, kind = copy
    data = np.zeros(16, np.uint8)
    handle = runtime.buffer_alloc(8)
    with pytest.raises(RuntimeCallError, match=message):
        runtime.buffer_copy(data, source_offset, handle, target_offset, size, kind)


def test_host_arrays_must_be_usable_in_place(runtime):
    handle = runtime.buffer_alloc(64)
    strided = np.zeros((8, 8), np.uint8)[:, ::2]
    frozen = np.zeros(8, np.uint8)
    frozen.flags.writeable = False
    with pytest.raises(RuntimeCallError, match="source array is not contiguous"):
        runtime.buffer_copy(strided, 0, handle, 0, 8, HOST_TO_DEVICE)
    with pytest.raises(RuntimeCallError, match="target array is read-only"):
        runtime.buffer_copy(handle, 0, frozen, 0, 8, DEVICE_TO_HOST)
    with pytest.raises(RuntimeCallError, match="needs host memory"):
        runtime.buffer_copy(handle, 0, handle, 0, 8, HOST_TO_DEVICE)
    with pytest.raises(RuntimeCallError, match="source is list where"):
        runtime.buffer_copy([1, 2], 0, handle, 0, 2, HOST_TO_DEVICE)


@pytest.mark.parametrize("mapped", [True, False])
def test_a_cpu_pointer_is_coherent_across_copies_and_launches(mapped, machine, make_recorder):
    device = ReferenceDevice(machine, memory_bytes=1 << 20) if mapped else make_recorder(machine)
    runtime = Runtime(device)
    handle = runtime.upload(np.arange(16, dtype=np.uint8))
    pointer = runtime.buffer_cpu_ptr(handle)
    address = runtime.buffer(handle).address
    view = np.ctypeslib.as_array((ctypes.c_uint8 * 16).from_address(pointer))
    assert view.tolist() == list(range(16))

    view[3] = 77
    assert runtime.download(handle, 16, np.uint8)[3] == 77
    runtime.buffer_copy(np.full(1, 88, np.uint8), 0, handle, 4, 1, HOST_TO_DEVICE)
    assert view[4] == 88

    def store_something(launched):
        assert launched.read(address, 16).tolist() == view.tolist()
        launched.write(address, np.full(2, 99, np.uint8))

    if mapped:
        runtime.synchronize()
        store_something(device)
    else:
        device.on_run = store_something
        runtime.synchronize()
    assert view[:2].tolist() == [99, 99]
    assert runtime.download(handle, 2, np.uint8).tolist() == [99, 99]
    assert runtime.buffer_cpu_ptr(handle) == pointer


def test_a_pointer_that_is_no_handle_comes_back_as_it_is(runtime):
    data = np.zeros(1)
    assert runtime.buffer_cpu_ptr(data.ctypes.data) == data.ctypes.data
    assert runtime.buffer_cpu_ptr(0) == 0
    handle = runtime.buffer_alloc(1)
    runtime.buffer_free(handle)
    with pytest.raises(RuntimeCallError, match=r"buffer_cpu_ptr: .*freed already"):
        runtime.buffer_cpu_ptr(handle)


@pytest.mark.parametrize("barrier", ["write_barrier", "read_barrier"])
def test_barriers_check_their_region(barrier, runtime):
    handle = runtime.buffer_alloc(64)
    call = getattr(runtime, barrier)
    call(handle, 8, 0, 64)
    call(handle, 32, 15, 1)
    call(handle, 4, 0, 128)
    with pytest.raises(RuntimeCallError, match=f"{barrier}: 2 elements of 32 bits from element 15"):
        call(handle, 32, 15, 2)


@pytest.mark.parametrize("size", [0, 4096, 8191, (1 << 32) + 4096])
def test_device_memory_has_a_sensible_size(size, machine):
    with pytest.raises(RuntimeCallError, match=f"memory_bytes = {size}; it must be a multiple"):
        ReferenceDevice(machine, memory_bytes=size)


def test_device_accesses_stay_inside_its_memory(machine):
    device = ReferenceDevice(machine, memory_bytes=8192)
    with pytest.raises(RuntimeCallError, match="2 bytes from address 0x1fff"):
        device.read(0x1FFF, 2)
    with pytest.raises(RuntimeCallError, match="1 bytes from address 0x2000"):
        device.write(0x2000, np.zeros(1, np.uint8))
