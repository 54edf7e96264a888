// An Elastic Sketch of RoCE v2 flows in XDP (Yang et al., SIGCOMM 2018), in bytes of payload.
//
// Heavy part: buckets of seven flows and a vote against them; a flow that loses its place moves to
// the light part, an array of counters. As in engine/model/monitors/elastic_sketch.hpp: a newcomer
// takes the place of the smallest flow once the votes against exceed eight times that flow.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#ifndef BUCKETS
#define BUCKETS 2048
#endif
#ifndef LIGHT
#define LIGHT 65536
#endif
#define WAYS 7
#define LAMBDA 8
#define FLAG 0x80000000u  // part of the flow may be in the light part
#define ROCE 4791
#define BTH 12
#define ICRC 4

struct bucket {
  __u32 key[WAYS + 1];
  __u32 bytes[WAYS + 1];  // the last one: votes against
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, BUCKETS);
  __uint(map_flags, BPF_F_MMAPABLE);
  __type(key, __u32);
  __type(value, struct bucket);
} heavy SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, LIGHT);
  __uint(map_flags, BPF_F_MMAPABLE);
  __type(key, __u32);
  __type(value, __u64);
} light SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 2);  // frames, frames of RoCE
  __uint(map_flags, BPF_F_MMAPABLE);
  __type(key, __u32);
  __type(value, __u64);
} seen SEC(".maps");

static __always_inline void count(__u32 what) {
  __u64* found = bpf_map_lookup_elem(&seen, &what);
  if (found) ++*found;
}

static __always_inline void to_light(__u32 key, __u32 bytes) {
  __u32 place = (key * 0x9E3779B1u) % LIGHT;
  __u64* counter = bpf_map_lookup_elem(&light, &place);
  if (counter) *counter += bytes;
}

static __always_inline __u32 mixed(__u32 x) {
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  return x ^ (x >> 16);
}

static __always_inline void insert(__u32 key, __u32 bytes) {
  __u32 place = mixed(key) % BUCKETS;
  struct bucket* b = bpf_map_lookup_elem(&heavy, &place);
  if (!b) return;
  __u32 least = 0, empty = WAYS;
#pragma unroll
  for (__u32 i = 0; i < WAYS; ++i) {
    if (b->key[i] == key) {
      b->bytes[i] += bytes;
      return;
    }
    if (b->key[i] == 0 && empty == WAYS) empty = i;
    if ((b->bytes[i] & ~FLAG) < (b->bytes[least & 7] & ~FLAG)) least = i;
  }
  if (empty < WAYS) {
    b->key[empty & 7] = key;
    b->bytes[empty & 7] = bytes;
    return;
  }
  b->bytes[WAYS] += bytes;
  if (b->bytes[WAYS] / LAMBDA > (b->bytes[least & 7] & ~FLAG)) {
    to_light(b->key[least & 7], b->bytes[least & 7] & ~FLAG);
    b->key[least & 7] = key;
    b->bytes[least & 7] = bytes | FLAG;
    b->bytes[WAYS] = 0;
  } else {
    to_light(key, bytes);
  }
}

SEC("xdp")
int sketch(struct xdp_md* ctx) {
  void *data = (void*)(long)ctx->data, *end = (void*)(long)ctx->data_end;
  struct ethhdr* eth = data;
  count(0);
  if ((void*)(eth + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP)) return XDP_PASS;
  struct iphdr* ip = (void*)(eth + 1);
  if ((void*)(ip + 1) > end || ip->protocol != IPPROTO_UDP || ip->ihl != 5) return XDP_PASS;
  struct udphdr* udp = (void*)(ip + 1);
  if ((void*)(udp + 1) > end || udp->dest != bpf_htons(ROCE)) return XDP_PASS;
  __u8* bth = (void*)(udp + 1);
  if ((void*)(bth + BTH) > end) return XDP_PASS;
  __u32 opcode = bth[0] & 0x1f;  // RDMA writes: first, middle, last, only
  if (opcode < 0x06 || opcode > 0x0b) return XDP_PASS;
  __u32 pair = bth[5] << 16 | bth[6] << 8 | bth[7];
  __u32 headers = sizeof(*udp) + BTH + ICRC + (opcode == 0x06 || opcode == 0x0a ? 16 : 0);
  __u32 length = bpf_ntohs(udp->len);
  __u32 key = mixed(ip->saddr) ^ mixed(ip->daddr + pair) ^ mixed(pair * 31);
  count(1);
  insert(key ? key : 1, length > headers ? length - headers : 0);
  return XDP_DROP;  // measured, and nothing behind it
}

char LICENSE[] SEC("license") = "GPL";
