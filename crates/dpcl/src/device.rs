//! Where tensors live. The CPU is always there; graphics processors are behind cargo features of the same name.

use burn::tensor::Device;

use crate::error::{Error, Result};

/// The instruction set the CPU's kernels will run on.
///
/// # Errors
/// When the environment asks for one that does not exist or that this processor lacks.
pub fn instruction_set() -> Result<&'static str> {
    Ok(dpcl_kernels::Isa::from_environment()?.name())
}

/// Has kernels that are called from this thread use so many threads, itself included; 0 goes by the configuration. What is
/// computed does not depend on it.
pub fn use_threads_here(count: usize) {
    dpcl_kernels::set_threads_here(count);
}

/// Devices this program was built for.
pub const DEVICES: &[&str] = &[
    "cpu",
    #[cfg(feature = "vulkan")]
    "vulkan",
    #[cfg(feature = "webgpu")]
    "webgpu",
];

/// The device of that name.
///
/// # Errors
/// When this program was not built for it.
pub fn named(name: &str) -> Result<Device> {
    match name {
        "cpu" => Ok(Device::flex()),
        #[cfg(feature = "vulkan")]
        "vulkan" => Ok(Device::vulkan(burn::tensor::DeviceKind::DefaultDevice)),
        #[cfg(feature = "webgpu")]
        "webgpu" => Ok(Device::webgpu(burn::tensor::DeviceKind::DefaultDevice)),
        _ => Err(Error::UnknownName {
            kind: "device in this build",
            name: name.to_owned(),
            known: DEVICES.iter().map(|&name| name.to_owned()).collect(),
        }),
    }
}
