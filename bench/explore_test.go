package bench

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

var only = flag.String("only", "", "explore scenarios")

func TestExplore(t *testing.T) {
	if *only == "" {
		return
	}
	for _, a := range algorithms {
		for _, c := range charges {
			name := a.name + ", " + c.name
			if !strings.Contains(name, *only) {
				continue
			}
			for _, p := range Policies {
				o := a.o
				o.Charge = c.c
				began := time.Now()
				r := bubble(t, Scenario{Name: name, Provider: o, Load: Overload, N: 1000}, p, 1)
				fmt.Printf("%-26s %-34s 429 %6.1f%% ideal %6.2f%% used %6.2f%% p50 %8.1f p99 %8.1f most %d failed %d early %d real %v\n", name, p.Name, 100*r.RefusedShare(), 100*r.OfIdeal(), 100*r.Used,
					Quantile(r.Waits, .5).Seconds(), Quantile(r.Waits, .99).Seconds(), r.Most, r.Failed, r.Early, time.Since(began).Round(time.Millisecond))
			}
		}
	}
}
