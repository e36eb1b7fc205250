# Packs the VTA machine @NAME@ (hash @HASH@) as an IP that Vivado's block designs can use:
#
#     vivado -mode batch -source package_ip.tcl [-tclargs PART]
#
# The IP is in the folder `ip` beside this file.
set part [expr {$argc > 0 ? [lindex $argv 0] : "@PART@"}]
set here [file dirname [file normalize [info script]]]

create_project -force -part $part vta_package [file join $here project_ip]
add_files -norecurse [file join $here @FILE@]
set_property top @MODULE@ [current_fileset]
update_compile_order -fileset sources_1

ipx::package_project -root_dir [file join $here ip] -vendor vta-sdk -library user \
    -taxonomy /UserIP -import_files -force
set core [ipx::current_core]
set_property name @MODULE@ $core
set_property version @VERSION@ $core
set_property display_name {VTA @NAME@} $core
set_property description {Versatile Tensor Accelerator, @SHAPE@, machine hash @HASH@} $core
set_property supported_families {zynq Production zynquplus Production artix7 Production \
    kintex7 Production virtex7 Production kintexu Production kintexuplus Production} $core

# AXI interfaces are inferred from their port names; clock, reset and interrupt are named here.
proc infer {core port kind} {
    if {[llength [ipx::get_bus_interfaces -quiet $port -of_objects $core]] == 0} {
        ipx::infer_bus_interface $port xilinx.com:signal:${kind}_rtl:1.0 $core
    }
    return [ipx::get_bus_interfaces $port -of_objects $core]
}
proc parameter {interface name value} {
    set found [ipx::get_bus_parameters -quiet $name -of_objects $interface]
    if {[llength $found] == 0} {
        set found [ipx::add_bus_parameter $name $interface]
    }
    set_property value $value $found
}
infer $core @CLOCK@ clock
parameter [infer $core @RESET@ reset] POLARITY ACTIVE_LOW
parameter [infer $core @INTERRUPT@ interrupt] SENSITIVITY LEVEL_HIGH
foreach bus {@CONTROL@ @DATA@} {
    ipx::associate_bus_interfaces -busif $bus -clock @CLOCK@ $core
}
ipx::associate_bus_interfaces -clock @CLOCK@ -reset @RESET@ $core

# One ID, answers in order, no exclusive or narrow transfers.
set master [ipx::get_bus_interfaces @DATA@ -of_objects $core]
parameter $master SUPPORTS_NARROW_BURST 0
parameter $master MAX_BURST_LENGTH @BURST_BEATS@
parameter $master NUM_READ_OUTSTANDING @OUTSTANDING@

set map [ipx::get_memory_maps @CONTROL@ -of_objects $core]
set block [lindex [ipx::get_address_blocks -of_objects $map] 0]
set_property range @RANGE@ $block

ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::check_integrity $core
ipx::save_core $core
close_project
