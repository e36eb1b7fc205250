# A Zynq-7000 block design with the VTA machine @NAME@ (hash @HASH@), after package_ip.tcl:
#
#     vivado -mode batch -source zynq_example.tcl [-tclargs PART]
#
# The processors reach the registers through M_AXI_GP0, the machine reaches DRAM through S_AXI_HP0,
# and its interrupt is IRQ_F2P[0]. Without a board's preset the DRAM controller is not set up: on a
# board, set `board_part` of the project, and say `apply_board_preset 1` below.
set part [expr {$argc > 0 ? [lindex $argv 0] : "@PART@"}]
set here [file dirname [file normalize [info script]]]

create_project -force -part $part vta_zynq [file join $here project_zynq]
set_property ip_repo_paths [file join $here ip] [current_project]
update_ip_catalog

create_bd_design system
set ps [create_bd_cell -type ip -vlnv xilinx.com:ip:processing_system7:5.5 ps]
apply_bd_automation -rule xilinx.com:bd_rule:processing_system7 \
    -config {make_external "FIXED_IO, DDR" apply_board_preset 0 Master Disable Slave Disable} $ps
set_property -dict [list \
    CONFIG.PCW_FPGA0_PERIPHERAL_FREQMHZ {@MHZ@} \
    CONFIG.PCW_USE_M_AXI_GP0 {1} \
    CONFIG.PCW_USE_S_AXI_HP0 {1} \
    CONFIG.PCW_S_AXI_HP0_DATA_WIDTH {@HP_BITS@} \
    CONFIG.PCW_USE_FABRIC_INTERRUPT {1} \
    CONFIG.PCW_IRQ_F2P_INTR {1} \
] $ps

set vta [create_bd_cell -type ip -vlnv vta-sdk:user:@MODULE@:@VERSION@ vta]

# Interconnects, clock and reset come with the connections. HP0 is AXI3 with bursts of at most 16
# beats; the interconnect splits ours.
set clock /ps/FCLK_CLK0
apply_bd_automation -rule xilinx.com:bd_rule:axi4 \
    -config [list Master /ps/M_AXI_GP0 Slave /vta/@CONTROL@ Clk_master $clock Clk_slave $clock \
        Clk_xbar $clock intc_ip {New AXI SmartConnect}] \
    [get_bd_intf_pins vta/@CONTROL@]
apply_bd_automation -rule xilinx.com:bd_rule:axi4 \
    -config [list Master /vta/@DATA@ Slave /ps/S_AXI_HP0 Clk_master $clock Clk_slave $clock \
        Clk_xbar $clock intc_ip {New AXI SmartConnect}] \
    [get_bd_intf_pins ps/S_AXI_HP0]
connect_bd_net [get_bd_pins vta/@INTERRUPT@] [get_bd_pins ps/IRQ_F2P]

assign_bd_address
validate_bd_design
save_bd_design

set wrapper [make_wrapper -top -files [get_files system.bd]]
add_files -norecurse $wrapper
set_property top system_wrapper [current_fileset]
update_compile_order -fileset sources_1
puts "The design is in project_zynq; launch_runs impl_1 -to_step write_bitstream makes a bitstream."
