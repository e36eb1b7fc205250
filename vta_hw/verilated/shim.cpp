// The core in a clock loop with the memory of docs/microarchitecture.md, section 10, behind its AXI
// ports. One call runs one launch; nothing crosses to Python in between.

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "Vtop.h"
#include "Vtop___024root.h"
#include "verilated.h"
#if VTA_WAVES
#include "verilated_vcd_c.h"
#endif

// Legacy time stamp that Verilated code may ask for.
double sc_time_stamp() { return 0; }

namespace {

constexpr int BUS_BYTES = VTA_BUS_BYTES;
constexpr int STAGES = 3, FETCH = 0, STORE = 3;
constexpr int CLIENTS = 3;
constexpr int STALLS = 3;  // channels that the memory can hold up: AR, AW, W
constexpr int STAGE_OF_CLIENT[CLIENTS] = {2, FETCH, 1};  // memory_port.Client
constexpr uint64_t CHUNK_BYTES = 256, INSN_BYTES = 16;
constexpr uint32_t OKAY = 0, DECERR = 3;
constexpr uint32_t INSTRUCTION_ACCESS = 4;  // bit of AxPROT
constexpr uint64_t PAGE_BYTES = 4096;

// Why a launch ended.
enum Status : int32_t { DONE = 0, QUIET = 1, CYCLE_LIMIT = 2, PROTOCOL = 3 };

uint32_t hash32(uint32_t x) {
    x ^= x >> 16;
    x *= 0x21F0AAADu;
    x ^= x >> 15;
    x *= 0x735A2D97u;
    return x ^ (x >> 15);
}

// The late beats of one channel: beat n of a launch waits stall(n) cycles longer.
struct Jitter {
    bool on;
    uint32_t key;
    uint32_t beat = 0;
    int waiting = -1;  // cycles the current beat still waits; -1 before it is known

    // Called in every cycle in which a beat could move: whether it does.
    bool moves() {
        if (!on) return true;
        if (waiting < 0) {
            uint32_t mixed = hash32(key ^ beat);
            waiting = mixed & 7 ? 0 : 1 + (mixed >> 3 & 7);
        }
        if (waiting > 0) {
            --waiting;
            return false;
        }
        waiting = -1;
        ++beat;
        return true;
    }
};

// AXI4 A3.2.1: a master keeps VALID and everything with it until READY.
struct Held {
    bool waits = false;
    uint8_t payload[BUS_BYTES + 32] = {};

    bool broken(bool valid, bool ready, const uint8_t *now, size_t bytes) {
        bool wrong = waits && (!valid || std::memcmp(payload, now, bytes) != 0);
        waits = valid && !ready;
        std::memcpy(payload, now, bytes);
        return wrong;
    }
};

struct Read {
    uint64_t address;
    uint32_t beats;
    uint64_t earliest;
    bool instructions;
    size_t burst;  // number of its record
};

struct Write {
    uint64_t address;
    uint32_t beats;
    size_t burst;
};

// A grant of the read port whose address is not on the bus yet.
struct Grant {
    int64_t stage, insn, request;
};

// The fields of vta_isa.launch.Bursts, in its order.
struct Burst {
    int64_t stage, insn, address, beats, request, issue, first, last;

    void beat(int64_t now) {
        if (first < 0) first = now;
        last = now;
    }
};

}  // namespace

extern "C" {

// What a launch is given and what it brings back; the same struct in build.py's ctypes.
struct VtaLaunch {
    uint8_t *dram;
    uint64_t dram_bytes;
    const uint8_t *stream;
    uint64_t insn_address;
    uint64_t insn_count;
    uint64_t read_latency;
    uint64_t write_latency;
    uint64_t jitter;  // 1: beats are late
    uint64_t read_key;
    uint64_t write_key;
    uint64_t pressure;  // not 0: a seed; every channel of the memory is ready only now and then
    uint64_t quiet_limit;  // cycles without any event after which nothing will happen any more
    uint64_t cycle_limit;
    int64_t *dispatch;  // (insn_count,) cycles, -1 where it did not happen
    int64_t *start;
    int64_t *end;
    int8_t *stage;
    uint64_t cycles;
    const uint8_t *count_bits;  // width of each counter's field in the port `counts`
    uint64_t *counters;         // sums of those fields
    const int8_t *count_stage;  // the stage whose cycles a counter attributes, -1 for events
    uint64_t counter_count;
    int64_t *causes;   // (insn_count, counters with a stage): those cycles by instruction, or null
    int64_t *stalled;  // (insn_count, STALLS): cycles of AR, AW, W not ready, or null
    const int64_t *bursts;  // (burst_count, 8): Burst, by issue; valid until the next launch
    uint64_t burst_count;
    uint64_t bad_address;  // first access outside DRAM, where failed
    uint64_t failed;       // accesses answered with an error
    char problem[128];     // what broke the protocol
};

}  // extern "C"

namespace {

class Bench {
  public:
    Bench() : context(new VerilatedContext) {
        context->traceEverOn(VTA_WAVES);
        top.reset(new Vtop(context.get()));
        reset();
    }
    ~Bench() { top->final(); }

    // Writes the signals of cycles begin .. end - 1 of all launches, counted as if one followed the
    // other. False where the file cannot be written, or the model was built without.
    bool write_waves(const char *path, uint64_t begin, uint64_t end) {
#if VTA_WAVES
        waves.reset(new VerilatedVcdC);
        top->trace(waves.get(), 99);
        waves->open(path);
        waves_begin = begin;
        waves_end = end;
        return waves->isOpen();
#else
        return false;
#endif
    }

    void reset() {
        top->rst = 1;
        top->start = 0;
        top->m_axi_arready = top->m_axi_awready = top->m_axi_wready = 0;
        top->m_axi_rvalid = top->m_axi_bvalid = 0;
        for (int i = 0; i < 2; ++i) clock();
        top->rst = 0;
    }

    int32_t launch(VtaLaunch &l) {
        run = &l;
        reads.clear();
        writes.clear();
        responses.clear();
        read_jitter = Jitter{l.jitter != 0, uint32_t(l.read_key)};
        write_jitter = Jitter{l.jitter != 0, uint32_t(l.write_key)};
        for (auto &queue : queued) queue.clear();
        for (auto &queue : running) queue.clear();
        grants.clear();
        bursts.clear();
        for (auto &cycle : requested) cycle = -1;
        ar_held = aw_held = w_held = Held{};
        dispatched = 0;
        l.problem[0] = 0;
        uint64_t quiet = 0;

        top->insn_address = l.insn_address;
        top->insn_count = l.insn_count;
        for (now = 0;; ++now) {
            top->start = now == 0;
            drive();
            top->clk = 0;
            top->eval();
            if (now > 0 && !top->busy) break;
            dump(0);
            for (int stage = 0; stage <= STAGES; ++stage) owner[stage] = insn_of(stage);
            bool event = sample();
            count();
            note_stalls();
            top->clk = 1;
            top->eval();
            dump(1);
            ++age;
            if (l.problem[0]) return PROTOCOL;
            quiet = event ? 0 : quiet + 1;
            if (quiet > l.quiet_limit) return QUIET;
            if (now >= l.cycle_limit) return CYCLE_LIMIT;
        }
        top->clk = 1;
        top->eval();
        l.cycles = now;
        l.bursts = reinterpret_cast<const int64_t *>(bursts.data());
        l.burst_count = bursts.size();
        return DONE;
    }

    // The array of one bank of a memory; null where there is none.
    const uint8_t *memory(int32_t buffer, int32_t bank, uint64_t *entry_bytes) {
#define MEMORY(of_buffer, number, name)                      \
    if (buffer == of_buffer && bank == number) {             \
        *entry_bytes = sizeof top->rootp->name[0];           \
        return reinterpret_cast<uint8_t *>(&top->rootp->name[0]); \
    }
#include "memories.inc"
#undef MEMORY
        return nullptr;
    }

  private:
    std::unique_ptr<VerilatedContext> context;
    std::unique_ptr<Vtop> top;
#if VTA_WAVES
    std::unique_ptr<VerilatedVcdC> waves;
    uint64_t waves_begin = 0, waves_end = 0;
#endif
    uint64_t age = 0;  // cycles of all launches before now
    VtaLaunch *run = nullptr;
    uint64_t now = 0;
    std::deque<Read> reads;
    std::deque<Write> writes;
    std::deque<uint64_t> responses;
    Jitter read_jitter, write_jitter;
    std::deque<uint64_t> queued[STAGES], running[STAGES];
    uint64_t dispatched = 0;
    int64_t owner[STAGES + 1];  // of this cycle, before what happens in it
    int64_t requested[CLIENTS];  // since when each client presents a burst; -1: it does not
    std::deque<Grant> grants;
    std::vector<Burst> bursts;
    Held ar_held, aw_held, w_held;

    // The signals of one half of a cycle; a cycle takes two units of time, the first with clk low.
    void dump(int half) {
#if VTA_WAVES
        if (!waves || age < waves_begin || age >= waves_end) return;
        waves->dump(2 * age + half);
        if (half == 1) waves->flush();
#else
        (void)half;
#endif
    }

    void clock() {
        top->clk = 0;
        top->eval();
        top->clk = 1;
        top->eval();
    }

    // Whether a channel under pressure is held up in this cycle.
    bool held_up(uint32_t channel) {
        if (!run->pressure) return false;
        return hash32(uint32_t(run->pressure) ^ hash32(uint32_t(now) * 8 + channel)) % 3 == 0;
    }

    void complain(const char *text) {
        if (!run->problem[0]) std::strncpy(run->problem, text, sizeof run->problem - 1);
    }

    bool in_dram(uint64_t address) {
        if (address + BUS_BYTES <= run->dram_bytes) return true;
        // The last beat may reach past the end of an image that is no whole number of beats.
        if (address < run->dram_bytes) return true;
        if (!run->failed) run->bad_address = address;
        ++run->failed;
        return false;
    }

    // Bytes of one beat; what lies outside reads as zeros.
    static void copy_beat(uint8_t *beat, const uint8_t *image, uint64_t size, uint64_t address) {
        std::memset(beat, 0, BUS_BYTES);
        if (address < size) {
            uint64_t bytes = size - address < BUS_BYTES ? size - address : BUS_BYTES;
            std::memcpy(beat, image + address, bytes);
        }
    }

    // Inputs of this cycle, from what happened in earlier ones.
    void drive() {
        top->m_axi_arready = !held_up(0);
        top->m_axi_awready = !held_up(1);
        top->m_axi_rvalid = 0;
        if (!reads.empty() && now >= reads.front().earliest && !held_up(2) &&
            read_jitter.moves()) {
            Read &read = reads.front();
            uint8_t beat[BUS_BYTES];
            uint32_t response = OKAY;
            if (read.instructions) {
                uint64_t base = run->insn_address & ~uint64_t(BUS_BYTES - 1);
                uint8_t lead = uint8_t(run->insn_address - base);
                std::memset(beat, 0, BUS_BYTES);
                for (int i = 0; i < BUS_BYTES; ++i) {
                    uint64_t place = read.address - base + i - lead;  // wraps before the stream
                    if (place < 16 * run->insn_count) beat[i] = run->stream[place];
                }
            } else if (in_dram(read.address)) {
                copy_beat(beat, run->dram, run->dram_bytes, read.address);
            } else {
                std::memset(beat, 0, BUS_BYTES);
                response = DECERR;
            }
            std::memcpy(&top->m_axi_rdata, beat, BUS_BYTES);
            top->m_axi_rvalid = 1;
            top->m_axi_rresp = response;
            top->m_axi_rlast = read.beats == 1;
            bursts[read.burst].beat(int64_t(now));
            read.address += BUS_BYTES;
            if (--read.beats == 0) reads.pop_front();
        }
        // WVALID comes from registers: it is known before the clock's low phase is evaluated.
        bool idle = !top->m_axi_wvalid;
        top->m_axi_wready = !held_up(3) && (idle || write_jitter.moves());
        top->m_axi_bvalid = !responses.empty() && responses.front() <= now && !held_up(4);
        top->m_axi_bresp = OKAY;
        if (top->m_axi_bvalid) responses.pop_front();
    }

    // Outputs of this cycle; whether anything happened.
    bool sample() {
        bool event = top->m_axi_rvalid || top->m_axi_bvalid;
        if (top->m_axi_rvalid && !top->m_axi_rready) complain("RREADY is low");
        check_stability();
        trace_requests();
        if (top->m_axi_arvalid && top->m_axi_arready) {
            Read read{uint64_t(top->m_axi_araddr), uint32_t(top->m_axi_arlen) + 1,
                      now + run->read_latency, (top->m_axi_arprot & INSTRUCTION_ACCESS) != 0,
                      bursts.size()};
            check(read.address, read.beats);
            reads.push_back(read);
            if (grants.empty()) return complain("AR without a grant"), true;
            Grant grant = grants.front();
            grants.pop_front();
            if (grant.stage == FETCH) grant.insn = first_insn(read.address);
            bursts.push_back({grant.stage, grant.insn, int64_t(read.address), read.beats,
                              grant.request, int64_t(now), -1, -1});
            event = true;
        }
        if (top->m_axi_awvalid && top->m_axi_awready) {
            writes.push_back(
                {uint64_t(top->m_axi_awaddr), uint32_t(top->m_axi_awlen) + 1, bursts.size()});
            const Write &write = writes.back();
            check(write.address, write.beats);
            bursts.push_back({STORE, running_insn(STORE), int64_t(write.address), write.beats,
                              int64_t(now), int64_t(now), -1, -1});
            event = true;
        }
        if (top->m_axi_wvalid && top->m_axi_wready) {
            write_beat();
            event = true;
        }
        return trace() || event;
    }

    void check_stability() {
        uint64_t read[2] = {top->m_axi_araddr, top->m_axi_arlen};
        uint64_t write[2] = {top->m_axi_awaddr, top->m_axi_awlen};
        uint8_t beat[BUS_BYTES + 16];
        uint64_t extra[2] = {top->m_axi_wstrb, top->m_axi_wlast};
        std::memcpy(beat, &top->m_axi_wdata, BUS_BYTES);
        std::memcpy(beat + BUS_BYTES, extra, sizeof extra);
        auto bytes = [](const uint64_t *words) { return reinterpret_cast<const uint8_t *>(words); };
        if (ar_held.broken(top->m_axi_arvalid, top->m_axi_arready, bytes(read), sizeof read))
            complain("AR changed while it waited");
        if (aw_held.broken(top->m_axi_awvalid, top->m_axi_awready, bytes(write), sizeof write))
            complain("AW changed while it waited");
        if (w_held.broken(top->m_axi_wvalid, top->m_axi_wready, beat, sizeof beat))
            complain("W changed while it waited");
    }

    void check(uint64_t address, uint32_t beats) {
        if (address % BUS_BYTES) complain("a burst is not aligned to the bus");
        if (address / PAGE_BYTES != (address + beats * BUS_BYTES - 1) / PAGE_BYTES)
            complain("a burst crosses 4 KiB");
    }

    void write_beat() {
        if (writes.empty()) return complain("data is written before its address");
        Write &write = writes.front();
        uint64_t strobes = top->m_axi_wstrb;
        uint8_t beat[BUS_BYTES];
        std::memcpy(beat, &top->m_axi_wdata, BUS_BYTES);
        if (in_dram(write.address)) {
            for (int i = 0; i < BUS_BYTES; ++i) {
                uint64_t address = write.address + i;
                if ((strobes >> i & 1) && address < run->dram_bytes) run->dram[address] = beat[i];
            }
        }
        bursts[write.burst].beat(int64_t(now));
        write.address += BUS_BYTES;
        --write.beats;
        if ((write.beats == 0) != (top->m_axi_wlast != 0)) complain("WLAST is not the last beat");
        if (write.beats == 0) {
            writes.pop_front();
            responses.push_back(now + run->write_latency);
        }
    }

    // Adds up what the core counts in this cycle.
    void count() {
        const uint32_t *words = reinterpret_cast<const uint32_t *>(&top->counts);
        uint64_t place = 0, cause = 0, causes = 0;
        for (uint64_t i = 0; i < run->counter_count; ++i) causes += run->count_stage[i] >= 0;
        for (uint64_t i = 0; i < run->counter_count; ++i) {
            uint64_t bits = run->count_bits[i], low = place % 32;
            uint64_t value = words[place / 32] >> low;
            if (low + bits > 32) value |= uint64_t(words[place / 32 + 1]) << (32 - low);
            value &= (uint64_t(1) << bits) - 1;
            run->counters[i] += value;
            place += bits;
            if (run->count_stage[i] < 0) continue;
            int64_t insn = owner[run->count_stage[i]];
            if (run->causes && insn >= 0) run->causes[uint64_t(insn) * causes + cause] += value;
            ++cause;
        }
    }

    // The instruction to which a cycle of a stage belongs; -1: to nobody.
    int64_t insn_of(int stage) const {
        if (stage == FETCH) return dispatched < run->insn_count ? int64_t(dispatched) : -1;
        const auto &waiting = queued[stage - 1];
        return running[stage - 1].size() ? running_insn(stage)
               : waiting.size()          ? int64_t(waiting.front())
                                         : -1;
    }

    void note_stalls() {
        if (!run->stalled) return;
        const bool held[STALLS] = {top->m_axi_arvalid && !top->m_axi_arready,
                                   top->m_axi_awvalid && !top->m_axi_awready,
                                   top->m_axi_wvalid && !top->m_axi_wready};
        for (int stage = FETCH + 1; stage <= STAGES; ++stage)
            for (int channel = 0; owner[stage] >= 0 && channel < STALLS; ++channel)
                run->stalled[owner[stage] * STALLS + channel] += held[channel];
    }

    int64_t running_insn(int stage) const {
        const auto &queue = running[stage - 1];
        return queue.empty() ? -1 : int64_t(queue.front());
    }

    // Who asks the read port for a burst, and gets it. Called before trace: a stage does not ask in
    // the cycle in which it starts or ends an instruction.
    void trace_requests() {
        if (!top->trace_request) return;
        for (int client = 0; client < CLIENTS; ++client) {
            if (!(top->trace_request >> client & 1)) continue;
            if (requested[client] < 0) requested[client] = int64_t(now);
            if (!(top->trace_grant >> client & 1)) continue;
            int stage = STAGE_OF_CLIENT[client];
            // What fetch asks for is known when its address is.
            int64_t insn = stage == FETCH ? -1 : running_insn(stage);
            grants.push_back({stage, insn, requested[client]});
            requested[client] = -1;
        }
    }

    // The first instruction of the chunk that lies at an address.
    int64_t first_insn(uint64_t address) const {
        uint64_t chunk = address / CHUNK_BYTES * CHUNK_BYTES;
        return chunk <= run->insn_address ? 0 : int64_t((chunk - run->insn_address) / INSN_BYTES);
    }

    // Which instruction does what in this cycle.
    bool trace() {
        if (!(top->trace_dispatch | top->trace_start | top->trace_end)) return false;
        for (int stage = 0; stage < STAGES; ++stage) {
            // An instruction that ends makes room for one that starts later.
            if (top->trace_end >> stage & 1) {
                run->end[running[stage].front()] = int64_t(now);
                running[stage].pop_front();
            }
            if (top->trace_start >> stage & 1) {
                uint64_t number = queued[stage].front();
                queued[stage].pop_front();
                running[stage].push_back(number);
                run->start[number] = int64_t(now);
            }
            if (top->trace_dispatch >> stage & 1) {
                run->dispatch[dispatched] = int64_t(now);
                run->stage[dispatched] = int8_t(stage + 1);
                queued[stage].push_back(dispatched++);
            }
        }
        return true;
    }
};

}  // namespace

extern "C" {

void *vta_new() { return new Bench; }
void vta_delete(void *bench) { delete static_cast<Bench *>(bench); }
void vta_reset(void *bench) { static_cast<Bench *>(bench)->reset(); }
const uint8_t *vta_memory(void *bench, int32_t buffer, int32_t bank, uint64_t *entry_bytes) {
    return static_cast<Bench *>(bench)->memory(buffer, bank, entry_bytes);
}
int32_t vta_waves(void *bench, const char *path, uint64_t begin, uint64_t end) {
    return static_cast<Bench *>(bench)->write_waves(path, begin, end);
}
int32_t vta_launch(void *bench, VtaLaunch *launch) {
    return static_cast<Bench *>(bench)->launch(*launch);
}

}  // extern "C"
