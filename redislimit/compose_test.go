package redislimit_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tripmeter/tripmeter/redislimit/internal/redistest"
)

// section is what compose.yaml has under a key, as text: its lines are few and plain.
func section(text, key string) (value string, under []string) {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		name, rest, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) != key {
			continue
		}
		depth := len(line) - len(strings.TrimLeft(line, " "))
		for _, next := range lines[i+1:] {
			if strings.TrimSpace(next) == "" || len(next)-len(strings.TrimLeft(next, " ")) <= depth {
				break
			}
			under = append(under, strings.TrimSpace(next))
		}
		return strings.TrimSpace(rest), under
	}
	return "", nil
}

// The compose file starts a store that this package can use. The image exists, a
// server accepts the command line, and the volume is declared. The port is the one the
// example takes without a flag.
func TestTheComposeFileStartsAStore(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`(?m)^#.*$`).ReplaceAllString(string(b), "")
	if strings.Contains(text, "\t") {
		t.Error("YAML has no tabs")
	}
	list := func(key string) (all []string) { // a flow sequence of strings is JSON
		v, _ := section(text, key)
		if err := json.Unmarshal([]byte(v), &all); err != nil || len(all) == 0 {
			t.Fatalf("%s: %q: %v", key, v, err)
		}
		return all
	}
	if _, services := section(text, "services"); !slices.Contains(services, "store:") {
		t.Errorf("no service: %q", services)
	}
	image, _ := section(text, "image")
	if !regexp.MustCompile(`^(valkey/valkey:[89]|redis:[78])$`).MatchString(image) {
		t.Errorf("image %q: known are valkey/valkey of 8 and 9, and redis of 7 and 8", image)
	}
	command := list("command")
	program := map[bool]string{true: "valkey-server", false: "redis-server"}[strings.HasPrefix(image, "valkey/")]
	if command[0] != program {
		t.Errorf("%s runs %s", image, command[0])
	}
	if ping := list("test"); strings.TrimSuffix(program, "server")+"cli" != ping[1] {
		t.Errorf("%s has no %s", image, ping[1])
	}
	// A server takes these arguments, and says that it heeds them.
	server := redistest.Start(t, command[1:]...)
	for key, want := range map[string]string{"appendonly": "yes", "maxmemory-policy": "noeviction", "maxmemory": "268435456"} {
		if got := server.Must(t, "CONFIG", "GET", key); got != key+"\n"+want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	example, err := os.ReadFile("examples/workers/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list("ports") {
		address := strings.TrimSuffix(p, ":6379")
		if address == p || !strings.Contains(string(example), `"`+address+`"`) {
			t.Errorf("port %q is not where the example looks", p)
		}
	}
	for _, v := range list("volumes") {
		name, path, _ := strings.Cut(v, ":")
		if path != "/data" || !strings.Contains(text, "\nvolumes:\n  "+name+":") {
			t.Errorf("volume %q is not declared, or not where the image keeps its files", v)
		}
	}
}
