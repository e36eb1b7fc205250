"""From tensor expressions and schedules, through loop IR, to native code."""
