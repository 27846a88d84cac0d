package redislimit_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/redislimit"
	"github.com/tripmeter/tripmeter/redislimit/goredis"
	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
)

// failover is a Runner whose server is replaced.
type failover struct {
	now atomic.Pointer[redislimit.Listener]
}

func (f *failover) Run(ctx context.Context, s *redislimit.Script, keys, args []string) (string, error) {
	return (*f.now.Load()).Run(ctx, s, keys, args)
}

// The master dies, and a replica that is 10 ms behind takes over. The decisions of
// those 10 ms are lost: at most the rate of decisions times the delay, and the
// decisions of one call. The limiter finds the gap, admits nothing for the
// learning period and begins from nothing. With WAIT for one replica nothing is
// lost.
func TestAFailoverLosesAtMostTheDelay(t *testing.T) {
	t.Parallel()
	const delay = 10 * time.Millisecond
	rates := map[bool]float64{}
	for _, synced := range []bool{false, true} {
		t.Run("synced="+strconv.FormatBool(synced), func(t *testing.T) {
			master := redistest.Start(t, "--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1")
			proxy := redistest.Delay(t, master.Addr, delay)
			replica := redistest.Start(t, "--replicaof", "127.0.0.1 "+strconv.Itoa(proxy.Port), "--repl-diskless-load", "swapdb")
			eventually(t, 20*time.Second, "the replica follows", func() bool {
				return strings.Contains(replica.Must(t, "INFO", "replication"), "master_link_status:up")
			})
			f := &failover{}
			via := func(addr string, sync bool) *redislimit.Listener {
				c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
				t.Cleanup(func() { c.Close() })
				l := goredis.New(c)
				if sync {
					l = goredis.Synced(c, 1, 800*time.Millisecond)
				}
				return &l
			}
			f.now.Store(via(master.Addr, synced))
			var gaps atomic.Int64
			l := open(t, redislimit.Options{Runner: f, Timeout: time.Second, Limits: []limit.Limit{{Name: "requests", Rate: limit.PerDay(1_000_000_000), Burst: 1_000_000_000}},
				Trace: redislimit.Trace{Gap: func(redislimit.State) { gaps.Add(1) }}})
			var acknowledged atomic.Int64
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			var all sync.WaitGroup
			for range 32 {
				all.Go(func() {
					for ctx.Err() == nil && !l.State().Away {
						r, err := l.Admit(ctx, limit.Ask{Cost: requests(1)})
						if err != nil {
							return
						}
						acknowledged.Add(1)
						r.Keep()
					}
				})
			}
			time.Sleep(time.Second)
			before, at := acknowledged.Load(), time.Now()
			time.Sleep(500 * time.Millisecond)
			rate := float64(acknowledged.Load()-before) / time.Since(at).Seconds()
			master.Kill()
			proxy.Cut()
			stop()
			all.Wait()
			replica.Must(t, "REPLICAOF", "NO", "ONE")
			f.now.Store(via(replica.Addr, false))
			eventually(t, 15*time.Second, "it is back", func() bool {
				return !l.State().Away && l.State().Err == nil && l.Snapshot().Served.Requests > 0
			})
			kept := l.Snapshot().Served.Requests
			lost := acknowledged.Load() - kept
			rates[synced] = rate
			bound := int64(rate*(delay+20*time.Millisecond).Seconds()) + 64
			t.Logf("%.0f decisions a second, %d lost of %d; the bound is %d; gaps found: %d", rate, lost, acknowledged.Load(), bound, gaps.Load())
			switch {
			case synced && lost > 0:
				t.Errorf("%d lost in spite of WAIT", lost)
			case !synced && lost > bound:
				t.Errorf("%d lost, more than %d", lost, bound)
			case !synced && lost > 0 && gaps.Load() == 0:
				t.Error("the gap was not found")
			}
		})
	}
	if a, b := rates[false], rates[true]; a > 0 && b > 0 {
		t.Logf("WAIT leaves %.2f of the rate", b/a)
	}
}
