package redislimit_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/redislimit"
	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
)

// crowdSize is 5,000 so that the suite takes no longer; 100,000 take some seconds more.
var crowdSize = flag.Int("redis.crowd", 5000, "callers in the line whose cost is compared with that of ten")

// wide has three limits that never bind.
var wide = []limit.Limit{
	{Name: "rpm", Rate: limit.PerMinute(1_000_000_000)},
	{Name: "tpm", Unit: limit.Tokens, Rate: limit.PerMinute(1_000_000_000_000)},
	{Name: "otpm", Unit: limit.Output, Rate: limit.PerMinute(1_000_000_000_000)},
}

// stat is how often the server ran a command, and for how long in all.
func stat(t testing.TB, s *redistest.Server, command string) (calls int64, us float64) {
	t.Helper()
	for line := range strings.Lines(s.Must(t, "INFO", "commandstats")) {
		rest, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls=")
		if !ok {
			continue
		}
		n, rest, _ := strings.Cut(rest, ",usec=")
		total, _, _ := strings.Cut(rest, ",")
		calls, _ = strconv.ParseInt(n, 10, 64)
		us, _ = strconv.ParseFloat(total, 64)
	}
	return calls, us
}

// all is how many commands the server ran, those of scripts included.
func all(t testing.TB, s *redistest.Server) (calls int64) {
	t.Helper()
	for line := range strings.Lines(s.Must(t, "INFO", "commandstats")) {
		if _, rest, ok := strings.Cut(line, ":calls="); ok && !strings.HasPrefix(line, "cmdstat_info") {
			n, _, _ := strings.Cut(rest, ",")
			x, _ := strconv.ParseInt(n, 10, 64)
			calls += x
		}
	}
	return calls
}

// traffic is the bytes that the server read and wrote since the last RESETSTAT.
func traffic(t testing.TB, s *redistest.Server) (sum float64) {
	t.Helper()
	for line := range strings.Lines(s.Must(t, "INFO", "stats")) {
		for _, name := range []string{"total_net_input_bytes:", "total_net_output_bytes:"} {
			if n, ok := strings.CutPrefix(strings.TrimSpace(line), name); ok {
				x, _ := strconv.ParseFloat(n, 64)
				sum += x
			}
		}
	}
	return sum
}

// cpu is the seconds of a core that the server has used: on a busy machine the one
// figure that does not count others' work.
func cpu(t testing.TB, s *redistest.Server) (sum float64) {
	t.Helper()
	for line := range strings.Lines(s.Must(t, "INFO", "cpu")) {
		for _, name := range []string{"used_cpu_user:", "used_cpu_sys:"} {
			if n, ok := strings.CutPrefix(strings.TrimSpace(line), name); ok {
				x, _ := strconv.ParseFloat(n, 64)
				sum += x
			}
		}
	}
	return sum
}

// One hot budget and 64 callers. If each is in a limiter of its own, every call
// decides for one. If all are in one limiter, a call decides for all callers that
// wait meanwhile. Decisions a second, the server's time for each, and the wait of
// one.
func BenchmarkHotBudget(b *testing.B) {
	for _, name := range []string{"goredis", "rueidis"} {
		single := 0.0
		for _, processes := range []int{64, 4, 1} {
			b.Run(fmt.Sprintf("%s/64 callers in %d", name, processes), func(b *testing.B) {
				server := redistest.Start(b)
				runner := clients[name](b, server.Addr)
				var m []*redislimit.Limiter
				for range processes {
					m = append(m, open(b, redislimit.Options{Name: "hot", Runner: runner, Limits: wide, Timeout: 2 * time.Second, MemberTTL: 30 * time.Second}))
				}
				server.Must(b, "CONFIG", "RESETSTAT")
				core := cpu(b, server)
				waits := make([][]time.Duration, 64)
				var wg sync.WaitGroup
				b.ResetTimer()
				for i := range 64 {
					n := b.N / 64
					wg.Go(func() {
						for range n {
							start := time.Now()
							r, err := m[i%processes].Admit(context.Background(), limit.Ask{Cost: limit.Cost{Requests: 1, Input: 900, Output: 100}})
							if err != nil {
								b.Error(err)
								return
							}
							waits[i] = append(waits[i], time.Since(start))
							r.Settle(limit.Cost{Input: 900, Output: 50})
						}
					})
				}
				wg.Wait()
				b.StopTimer()
				sorted := slices.Concat(waits...)
				if len(sorted) == 0 {
					return
				}
				slices.Sort(sorted)
				calls, us := stat(b, server, "evalsha")
				rate := float64(len(sorted)) / b.Elapsed().Seconds()
				if processes == 64 {
					single = us / float64(len(sorted))
				}
				b.ReportMetric(rate, "decisions/s")
				b.ReportMetric(traffic(b, server)/float64(len(sorted)), "net_B/decision")
				b.ReportMetric(float64(len(sorted))/float64(calls), "a_call")
				b.ReportMetric(us/float64(calls), "script_us/call")
				b.ReportMetric(us/float64(len(sorted)), "script_us/decision")
				used := cpu(b, server) - core
				b.ReportMetric(float64(len(sorted))/used, "decisions/core_s")
				b.ReportMetric(used/float64(calls)*1e6, "core_us/call")
				b.ReportMetric(single/(us/float64(len(sorted))), "x_of_single")
				b.ReportMetric(float64(sorted[len(sorted)*99/100].Microseconds()), "p99_us")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// crowd puts n callers into the line and n open reservations beside them.
func crowd(t testing.TB, l *redislimit.Limiter, n, tenants int) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range n {
		take(t, l, limit.Ask{Scopes: []string{"free"}, Tenant: fmt.Sprint("t", i%tenants)})
		wg.Go(func() {
			l.Admit(ctx, limit.Ask{Cost: tokens(1), Scopes: []string{"busy"}, Tenant: fmt.Sprint("t", i%tenants)})
		})
		if i%1000 == 999 {
			time.Sleep(time.Millisecond)
		}
	}
	for l.Snapshot().Waiting < n {
		time.Sleep(10 * time.Millisecond)
	}
	return func() { cancel(); wg.Wait() }
}

func crowded(t testing.TB, server *redistest.Server, via func(testing.TB, ...string) redislimit.Listener) *redislimit.Limiter {
	return open(t, redislimit.Options{Name: "crowd", Runner: via(t, server.Addr), Timeout: 2 * time.Second, MemberTTL: 30 * time.Second, Limits: wide,
		Open: func(scope string) (limit.ScopeOptions, []limit.Limit) {
			if scope == "busy" {
				return limit.ScopeOptions{}, []limit.Limit{{Name: "day", Unit: limit.Tokens, Rate: limit.PerDay(1), Burst: 1, Empty: true}}
			}
			return limit.ScopeOptions{}, nil
		}})
}

// What a call costs does not depend on how many wait and how many reservations are
// open: the script runs as many commands, each of which is O(log n) at most.
func TestACallRunsAsManyCommandsWhateverWaits(t *testing.T) {
	t.Parallel()
	count := func(n int) float64 {
		server := redistest.Start(t)
		l := crowded(t, server, viaRueidis)
		defer crowd(t, l, n, 20)()
		server.Must(t, "CONFIG", "RESETSTAT")
		const rounds = 200
		for i := range rounds {
			r := take(t, l, limit.Ask{Cost: tokens(1), Tenant: "another"})
			r.Keep()
			if i%4 == 0 { // and joins and leaves the line
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
				l.Admit(ctx, limit.Ask{Cost: tokens(1), Scopes: []string{"busy"}, Tenant: fmt.Sprint("t", i%20)})
				cancel()
			}
		}
		calls, _ := stat(t, server, "evalsha")
		return float64(all(t, server)) / float64(calls)
	}
	few := count(10)
	for _, n := range []int{1000, *crowdSize} {
		many := count(n)
		t.Logf("commands a call: %.1f with 10, %.1f with %d", few, many, n)
		if many > 1.2*few {
			t.Errorf("%.1f commands a call with 10 waiting, %.1f with %d", few, many, n)
		}
	}
}

// The server's time for a call with so many callers in the line, of a thousand
// tenants, and as many open reservations.
func BenchmarkCrowd(b *testing.B) {
	for _, n := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			server := redistest.Start(b)
			l := crowded(b, server, viaRueidis)
			leave := crowd(b, l, n, 1000)
			server.Must(b, "CONFIG", "RESETSTAT")
			b.ResetTimer()
			for range b.N {
				r, err := l.TryAdmit(limit.Ask{Cost: tokens(1), Tenant: "another"})
				if err != nil {
					b.Fatal(err)
				}
				r.Keep()
			}
			b.StopTimer()
			calls, us := stat(b, server, "evalsha")
			mem := server.Must(b, "INFO", "memory")
			_, mem, _ = strings.Cut(mem, "used_memory:")
			used, _, _ := strings.Cut(mem, "\r")
			bytes, _ := strconv.ParseFloat(used, 64)
			b.ReportMetric(us/float64(calls), "server_us/call")
			b.ReportMetric(bytes/1e6, "MB")
			leave()
		})
	}
}

// Every caller has to wait: 64 callers in four limiters, three tenants, and a rate
// that binds. What a call costs that joins the line and moves it.
func BenchmarkLine(b *testing.B) {
	server := redistest.Start(b)
	runner := viaRueidis(b, server.Addr)
	var m []*redislimit.Limiter
	for range 4 {
		m = append(m, open(b, redislimit.Options{Name: "line", Runner: runner, Limits: tokenLimit(limit.PerSecond(20_000), 20, true)}))
	}
	server.Must(b, "CONFIG", "RESETSTAT")
	core := cpu(b, server)
	var wg sync.WaitGroup
	b.ResetTimer()
	for i := range 64 {
		wg.Go(func() {
			for range b.N / 64 {
				r, err := m[i%4].Admit(context.Background(), limit.Ask{Cost: tokens(2), Tenant: strconv.Itoa(i % 3)})
				if err != nil {
					b.Error(err)
					return
				}
				r.Settle(tokens(1))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	calls, us := stat(b, server, "evalsha")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
	b.ReportMetric(float64(b.N)/float64(calls), "a_call")
	b.ReportMetric(us/float64(calls), "script_us/call")
	used := cpu(b, server) - core
	b.ReportMetric(float64(b.N)/used, "decisions/core_s")
	b.ReportMetric(used/float64(calls)*1e6, "core_us/call")
	b.ReportMetric(us/float64(b.N), "script_us/decision")
}
