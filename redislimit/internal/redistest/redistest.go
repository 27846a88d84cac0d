// Package redistest starts real servers for tests: single ones, a replica, a
// cluster, on free ports of the loopback, and ends them with the test.
//
// It fails a test whose server is missing, and does not skip it: no mock stands in
// for the engine. TRIPMETER_REDIS_SERVER names another binary, such as
// valkey-server.
package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Binary is the server that tests start.
func Binary() string {
	if b := os.Getenv("TRIPMETER_REDIS_SERVER"); b != "" {
		return b
	}
	return "redis-server"
}

// A Server is one process.
type Server struct {
	Addr string
	Port int

	dir  string
	args []string
	cmd  *exec.Cmd
	done chan struct{}
}

// Start starts a server with further arguments, as in its configuration file
// ("--appendonly", "yes"). Without any it keeps nothing on disk.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	if _, err := exec.LookPath(Binary()); err != nil {
		t.Fatalf("these tests run a real server, and %q is not there: apt-get install redis-server, or name another in TRIPMETER_REDIS_SERVER (%v)", Binary(), err)
	}
	s := &Server{Port: port(t), dir: t.TempDir()}
	s.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port))
	s.args = append([]string{
		"--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--loglevel", "warning",
	}, args...)
	s.Run(t)
	t.Cleanup(s.Kill)
	return s
}

// Run starts the process, after Kill on the same port with the same files.
func (s *Server) Run(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(Binary(), s.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()
	s.cmd, s.done = cmd, done
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if out, err := s.Do("PING"); err == nil && out == "PONG" {
			return
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			t.Fatalf("%s does not answer on port %d:\n%s", Binary(), s.Port, text)
		}
	}
}

// Kill ends the process at once, as kill -9 does.
func (s *Server) Kill() {
	s.cmd.Process.Signal(syscall.SIGCONT)
	s.cmd.Process.Kill()
	<-s.done
}

// Freeze stops the process where it stands; Thaw lets it go on.
func (s *Server) Freeze() { s.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw lets a frozen process go on.
func (s *Server) Thaw() { s.cmd.Process.Signal(syscall.SIGCONT) }

// Do sends one command on a connection of its own and returns the answer as text:
// arrays one element a line.
func (s *Server) Do(args ...string) (string, error) {
	c, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	return (&Conn{c, bufio.NewReader(c)}).Do(args...)
}

// A Conn is one connection. It has no goroutine and no timer, so a test in a bubble of
// synctest can use it, one command at a time.
type Conn struct {
	net.Conn
	r *bufio.Reader
}

// Dial connects to a server.
func Dial(addr string) (*Conn, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &Conn{c, bufio.NewReader(c)}, nil
}

// Do sends one command and returns the answer as text: arrays one element a line.
func (c *Conn) Do(args ...string) (string, error) {
	w := bufio.NewWriter(c)
	fmt.Fprintf(w, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(w, "$%d\r\n%s\r\n", len(a), a)
	}
	if err := w.Flush(); err != nil {
		return "", err
	}
	return answer(c.r)
}

// Must is Do for a command that must succeed.
func (s *Server) Must(t testing.TB, args ...string) string {
	t.Helper()
	out, err := s.Do(args...)
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return out
}

func answer(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	body := line[1:]
	switch line[0] {
	case '-':
		return "", errors.New(body)
	case '$':
		n, err := strconv.Atoi(body)
		if err != nil || n < 0 {
			return "", err
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return "", err
		}
		return string(b[:n]), nil
	case '*':
		n, err := strconv.Atoi(body)
		if err != nil {
			return "", err
		}
		all := make([]string, 0, max(0, n))
		for range n {
			x, err := answer(r)
			if err != nil {
				return "", err
			}
			all = append(all, x)
		}
		return strings.Join(all, "\n"), nil
	}
	return body, nil
}

var (
	mu   sync.Mutex
	used = map[int]bool{}
)

// port is a free port whose cluster port, 10,000 above, is free too.
func port(t testing.TB) int {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		p := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if p > 55000 || used[p] {
			p = 20000 + (p+len(used)*7)%30000
		}
		if used[p] || !free(p) || !free(p+10000) {
			continue
		}
		used[p] = true
		return p
	}
	t.Fatal("no free port")
	return 0
}

func free(p int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p)))
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// Cluster starts n masters that share the slots between them.
func Cluster(t testing.TB, n int) []*Server {
	t.Helper()
	var all []*Server
	for range n {
		all = append(all, Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000"))
	}
	for i, s := range all {
		from, to := i*16384/n, (i+1)*16384/n-1
		s.Must(t, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(from), strconv.Itoa(to))
		s.Must(t, "CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(all[0].Port))
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		up := 0
		for _, s := range all {
			if out, _ := s.Do("CLUSTER", "INFO"); strings.Contains(out, "cluster_state:ok") && strings.Contains(out, fmt.Sprintf("cluster_known_nodes:%d", n)) {
				up++
			}
		}
		if up == n {
			return all
		}
		if time.Now().After(deadline) {
			t.Fatal("the cluster did not come up in 20 s")
		}
	}
}

// A Proxy passes connections on to an address, each piece of data after a delay.
type Proxy struct {
	Addr  string
	Port  int
	delay time.Duration
	stop  context.CancelFunc
}

// Delay starts a proxy before addr.
func Delay(t testing.TB, addr string, delay time.Duration) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &Proxy{Addr: l.Addr().String(), Port: l.Addr().(*net.TCPAddr).Port, delay: delay, stop: stop}
	t.Cleanup(stop)
	context.AfterFunc(ctx, func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", addr)
			if err != nil {
				c.Close()
				continue
			}
			context.AfterFunc(ctx, func() { c.Close(); up.Close() })
			go p.pass(c, up)
			go p.pass(up, c)
		}
	}()
	return p
}

// Cut closes every connection, with what is still on its way.
func (p *Proxy) Cut() { p.stop() }

func (p *Proxy) pass(from, to net.Conn) {
	type piece struct {
		b  []byte
		at time.Time
	}
	way := make(chan piece, 1<<16)
	go func() {
		defer close(way)
		for {
			b := make([]byte, 1<<16)
			n, err := from.Read(b)
			if err != nil {
				return
			}
			way <- piece{b[:n], time.Now().Add(p.delay)}
		}
	}()
	for x := range way {
		time.Sleep(time.Until(x.at))
		if _, err := to.Write(x.b); err != nil {
			break
		}
	}
	to.Close()
}
