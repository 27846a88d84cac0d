package headers

import (
	"reflect"
	"testing"
	"time"
)

func TestTheDraftsFieldsAreRead(t *testing.T) {
	t.Run("lines stand alone", func(t *testing.T) {
		i := allowed(`RateLimit-Policy: "a";q=`, `RateLimit-Policy: "b";q=10;w=60`, `RateLimit: "b";r=4;t=9`)
		want := []Policy{{Name: "b", Quota: Quota{Limit: known(10), Remaining: known(4), Reset: after(9 * time.Second), Window: time.Minute}}}
		if !reflect.DeepEqual(i.Policies, want) || i.Requests != want[0].Quota {
			t.Errorf("%+v", i)
		}
	})
	t.Run("two partitions are two quotas", func(t *testing.T) {
		i := allowed(`RateLimit-Policy: "a";q=10;w=60`, `RateLimit: "a";r=4;t=9;pk=:YQ==:, "a";r=2;t=7;pk=:b:`)
		if len(i.Policies) != 2 || i.Policies[0].Partition != "YQ==" || i.Policies[1].Partition != "b" ||
			i.Policies[1].Limit != known(10) || i.Requests.Remaining != known(2) {
			t.Errorf("%+v", i)
		}
	})
	t.Run("the least remaining binds", func(t *testing.T) {
		i := allowed(`RateLimit: "burst";r=8;t=1, "daily";r=3;t=69076`)
		if i.Requests != (Quota{Remaining: known(3), Reset: after(69076 * time.Second)}) {
			t.Errorf("%+v", i)
		}
	})
	t.Run("another unit feeds nothing", func(t *testing.T) {
		i := allowed(`RateLimit-Policy: "a";q=10;qu="concurrent-requests"`, `RateLimit: "a";r=4`, `RateLimit: "c";r=1;qu="content-bytes"`)
		if i.Requests.known() || len(i.Policies) != 2 || i.Policies[0].Unit != "concurrent-requests" {
			t.Errorf("%+v", i)
		}
	})
	t.Run("a name that is a token", func(t *testing.T) {
		if i := allowed(`RateLimit: default;r=50;t=30`); i.Requests.Remaining != known(50) {
			t.Errorf("%+v", i)
		}
	})
	t.Run("partition as a string, with colons and quotes about", func(t *testing.T) {
		i := allowed(`RateLimit-Policy: "a;pk=:x:";q=1;pk="y", "b\";pk=:z:";q=2; pk=:not base64!:`)
		if len(i.Policies) != 2 || i.Policies[0].Name != "a;pk=:x:" || i.Policies[0].Partition != "y" ||
			i.Policies[1].Name != `b";pk=:z:` || i.Policies[1].Partition != "not base64!" {
			t.Errorf("%+v", i)
		}
	})
	t.Run("negative, huge and fractional parameters", func(t *testing.T) {
		i := allowed(`RateLimit: "a";r=1;t=-5, "b";r=2;t=1.5, "c";r=1.5;t=5, "d";r=3;t=1800000000`, `RateLimit-Policy: "e";q=-1, "f";q=5;w=-3, "g";q=5;w=999999999999999`)
		want := []Policy{
			{Name: "f", Quota: Quota{Limit: known(5)}},
			{Name: "g", Quota: Quota{Limit: known(5)}},
			{Name: "a", Quota: Quota{Remaining: known(1)}},
			{Name: "b", Quota: Quota{Remaining: known(2), Reset: after(1500 * time.Millisecond)}},
			{Name: "d", Quota: Quota{Remaining: known(3), Reset: after(time.Unix(1800000000, 0).Sub(noon))}},
		}
		if !reflect.DeepEqual(i.Policies, want) {
			t.Errorf("%+v, want %+v", i.Policies, want)
		}
	})
	t.Run("a number with a comma is no list", func(t *testing.T) {
		for _, v := range []string{"1,000", "1,001", "1,000;w=60", "10, 10;w=1, 20", "10;w=x", "a, 10;w=1", "-5, 5;w=1"} {
			if i := allowed("RateLimit-Limit: " + v); !i.empty() || i.Unread != 1 {
				t.Errorf("%s: %+v", v, i)
			}
		}
	})
	t.Run("two hops", func(t *testing.T) {
		i := allowed("x-ratelimit-limit: 10, 10;w=1, 10, 10;w=1", "x-ratelimit-remaining: 9")
		if i.Requests != (Quota{Limit: known(10), Remaining: known(9), Window: time.Second}) || len(i.Windows) != 0 {
			t.Errorf("%+v", i)
		}
	})
	t.Run("the hour binds and is named too", func(t *testing.T) {
		i := allowed("X-RateLimit-Limit-Second: 5", "X-RateLimit-Remaining-Second: 4", "X-RateLimit-Limit-Hour: 100", "X-RateLimit-Remaining-Hour: 2",
			"RateLimit-Limit: 100", "RateLimit-Remaining: 2", "RateLimit-Reset: 900")
		want := Quota{Limit: known(100), Remaining: known(2), Reset: after(15 * time.Minute), Window: time.Hour}
		if i.Requests != want || len(i.Windows) != 1 || i.Windows[0].Window != time.Second {
			t.Errorf("%+v", i)
		}
	})
}

// A line that breaks the grammar is read where it has one reading.
func TestALooseLineWithOneReadingIsRead(t *testing.T) {
	for line, want := range map[string][]Policy{
		`"fixed window";"api";q=500;w=300`:             {{Name: "api", Quota: Quota{Limit: known(500), Window: 5 * time.Minute}}},
		`fixed window;q=500;w=300`:                     {{Name: "fixed window", Quota: Quota{Limit: known(500), Window: 5 * time.Minute}}},
		`"api";Q=500;W=300`:                            {{Name: "api", Quota: Quota{Limit: known(500), Window: 5 * time.Minute}}},
		`"api"; q = 500; w = 300;`:                     {{Name: "api", Quota: Quota{Limit: known(500), Window: 5 * time.Minute}}},
		`"a";q="500";w="300", "b";q=9;w=60,`:           {{Name: "a", Quota: Quota{Limit: known(500), Window: 5 * time.Minute}}, {Name: "b", Quota: Quota{Limit: known(9), Window: time.Minute}}},
		`"fixed window";"api";q=500;w=300;pk=:YWJj:`:   {{Name: "api", Partition: "YWJj", Quota: Quota{Limit: known(500), Window: 5 * time.Minute}}},
		`"fixed window";"api";q=500;w=300;qu=requests`: {{Name: "api", Unit: "requests", Quota: Quota{Limit: known(500), Window: 5 * time.Minute}}},
		`"a";"b";q=500;q=600`:                          nil,
		`"a";"b";q=-5`:                                 nil,
		`"a";"b";w=300`:                                nil,
		`"a";"b";q=many`:                               nil,
		`"a";"b";q=5, nonsense`:                        nil,
		`"a`:                                           nil,
		`,`:                                            nil,
	} {
		i := allowed("RateLimit-Policy: " + line)
		if !reflect.DeepEqual(i.Policies, want) || (i.Unread == 0) != (want != nil) {
			t.Errorf("%s: %+v, want %+v", line, i, want)
		}
	}
	i := allowed(`RateLimit-Policy: "fixed window";"api";q=500;w=300`, `RateLimit: "api";r=499;t=299`)
	if want := (Quota{Limit: known(500), Remaining: known(499), Reset: after(299 * time.Second), Window: 5 * time.Minute}); i.Requests != want {
		t.Errorf("%+v, want %+v", i.Requests, want)
	}
	i = allowed(`RateLimit: api limit; r=4 ; t=9`)
	if want := (Quota{Remaining: known(4), Reset: after(9 * time.Second)}); i.Requests != want {
		t.Errorf("%+v, want %+v", i.Requests, want)
	}
}
