//! A GPU that never answers: tests that fill it with kernels without end, each in a process of its own.
//!
//! A GPU that hangs is lost for its process. A test starts its program again with its own name, and breaks the GPU there.

use std::ffi::c_void;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tandem_engine::search::device::list_gpus;

use super::skipped;
use cudarc::driver::sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT as MULTIPROCESSORS;
use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg, result};
use cudarc::nvrtc::Ptx;

/// A kernel that runs until the word at its argument is not 0.
const SPIN: &str = "
.version 7.0
.target sm_70
.address_size 64

.visible .entry spin(.param .u64 flag)
{
    .reg .b64 %address;
    .reg .b32 %value;
    .reg .pred %goes_on;
    ld.param.u64 %address, [flag];
AGAIN:
    ld.volatile.global.u32 %value, [%address];
    setp.eq.u32 %goes_on, %value, 0;
    @%goes_on bra AGAIN;
    ret;
}
";

/// Set in the process whose GPU is to break.
const BREAKS: &str = "TANDEM_BREAK_GPU";

/// Runs the test of this `name`, with its modules, in a process of its own if there is a GPU. Waits for the GPU are limited
/// to `wait_s` seconds there.
pub(crate) fn in_a_process_that_waits(name: &str, wait_s: f64, test: impl FnOnce()) {
    if std::env::var_os(BREAKS).is_some() {
        return test();
    }
    if let Err(reason) = list_gpus() {
        assert!(std::env::var_os("TANDEM_REQUIRE_GPU").is_none(), "TANDEM_REQUIRE_GPU is set, but: {reason}");
        return skipped::skipped("no GPU");
    }
    let test = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(BREAKS, "1")
        .env("TANDEM_GPU_WAIT_S", wait_s.to_string())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&test.stdout), String::from_utf8_lossy(&test.stderr));
    println!("{out}{err}");
    assert!(test.status.success() && out.contains("1 passed"), "{out}\n{err}");
}

/// A word that [`occupy`]'s kernels wait for.
pub(crate) fn flag() -> &'static AtomicU32 {
    let context = CudaContext::new(0).unwrap();
    context.bind_to_thread().unwrap();
    // SAFETY: these are four bytes of the host, which both sides may read and write as a word; they are never freed.
    let flag = unsafe { result::malloc_host(4, 0) }.unwrap().cast::<AtomicU32>();
    // SAFETY: the word is aligned to a page, and lives as long as the process.
    let flag: &'static AtomicU32 = unsafe { &*flag };
    flag.store(0, Ordering::SeqCst);
    // The memory ends with the last use of its context.
    std::mem::forget(context);
    flag
}

/// Fills the device with kernels that run until `flag` is not 0.
pub(crate) fn occupy(context: &Arc<CudaContext>, flag: &'static AtomicU32) {
    let module = context.load_module(Ptx::from_src(SPIN)).unwrap();
    let spin = module.load_function("spin").unwrap();
    let stream = context.new_stream().unwrap();
    // Twice as many threads as the device has room for keep all others out.
    let blocks = 4 * context.attribute(MULTIPROCESSORS).unwrap().unsigned_abs();
    let shape = LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (1024, 1, 1), shared_mem_bytes: 0 };
    let address = std::ptr::from_ref(flag).cast::<c_void>() as u64;
    // SAFETY: the argument is the address of a word that the device can read, as the kernel expects.
    unsafe { stream.launch_builder(&spin).arg(&address).launch(shape) }.unwrap();
    std::mem::forget((spin, module, stream));
}
