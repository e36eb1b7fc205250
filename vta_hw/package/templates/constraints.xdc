# Timing of the VTA machine @NAME@ on its own, for synthesis out of context. In a block design the
# clock comes from the block that makes it: do not use this file there.
#
# @MHZ@ MHz is what the machine description says under `clock`; whether a device reaches it is for
# place and route to tell.
create_clock -name @CLOCK@ -period @PERIOD@ [get_ports @CLOCK@]

# Inputs arrive, and outputs are needed, in the middle of the period.
set data_inputs [filter [all_inputs] {NAME != @CLOCK@}]
set_input_delay -clock @CLOCK@ @HALF@ $data_inputs
set_output_delay -clock @CLOCK@ @HALF@ [all_outputs]
