package batch

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tripmeter/tripmeter/cmd/internal/store"
)

// claims are the lines of one input as several workers share them. For each line the
// store has its worker, or that the line has its answer. A worker that says nothing
// for a lease has lost its lines to the others.
//
// An answer is first written to the worker's own file and then noted in the store. If
// another worker's line is noted already, the one just written is taken back. So a
// crash between the two loses nothing: the next run of the worker notes the line,
// or takes it back.
type claims struct {
	client  redis.UniversalClient
	lines   string // key of a hash: id to "=worker", "+line" or "-line"
	workers string // key of a sorted set: worker to the end of its lease, ms
	me      string
	lease   time.Duration
	say     func(string)

	busy atomic.Int64 // lines of others that this worker waits for

	mu   sync.Mutex // guards below
	owed []noted    // lines that the store does not know yet

	quit chan struct{}
	ran  sync.WaitGroup
}

// noted is a line that is in a file.
type noted struct {
	id   string
	mark string // "+" and the line's digest, or "-" where it is no 2xx
}

// The store keeps the lines of a job for that long after the last sign of a worker.
const keepClaims = 30 * 24 * time.Hour

var (
	takeScript = redis.NewScript(`
local v = redis.call('HGET', KEYS[1], ARGV[2])
if v then
  if string.sub(v, 1, 1) ~= '=' then return v end
  local owner = string.sub(v, 2)
  if owner ~= ARGV[1] then
    local ends, t = redis.call('ZSCORE', KEYS[2], owner), redis.call('TIME')
    if ends and tonumber(ends) > t[1] * 1000 + t[2] / 1000 then return '=' end
  end
end
redis.call('HSET', KEYS[1], ARGV[2], '=' .. ARGV[1])
return ''`)
	noteScript = redis.NewScript(`
local v = redis.call('HGET', KEYS[1], ARGV[1])
if v and string.sub(v, 1, 1) ~= '=' and v ~= ARGV[2] then return v end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return ''`)
	dropScript = redis.NewScript(`
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
return ''`)
	beatScript = redis.NewScript(`
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - 86400000)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return ''`)
)

// newClaims begins a lease. job names what the workers share.
func newClaims(s *store.Store, job string, lease time.Duration, say func(string)) (*claims, error) {
	key := "tripmeter:batch:{" + job + "}"
	c := &claims{
		client: s.Client, lines: key + ":lines", workers: key + ":workers", me: rand.Text(),
		lease: lease, say: say, quit: make(chan struct{}),
	}
	if err := c.beat(); err != nil {
		return nil, fmt.Errorf("-redis: %w", err)
	}
	c.ran.Go(func() {
		t := time.NewTicker(lease / 5)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				if c.beat() == nil {
					c.payOff()
				}
			case <-c.quit:
				return
			}
		}
	})
	return c, nil
}

// jobOf names a job after its input, so that workers with copies of one file share it.
func jobOf(f *os.File) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	_, err := f.Seek(0, io.SeekStart)
	return hex.EncodeToString(h.Sum(nil)[:12]), err
}

// digest is how a line is known in the store. Its beginning has all ids in it.
func digest(line []byte, good bool) string {
	h := sha256.Sum256(line[:min(len(line), 4096)])
	mark := "-"
	if good {
		mark = "+"
	}
	return mark + hex.EncodeToString(h[:8])
}

func (c *claims) run(s *redis.Script, args ...any) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return s.Run(ctx, c.client, []string{c.lines, c.workers}, args...).Text()
}

func (c *claims) beat() error {
	_, err := c.run(beatScript, c.me, c.lease.Milliseconds(), keepClaims.Milliseconds())
	return err
}

func field(id string) string { k := key(id); return string(k[:]) }

// take claims a line. It returns "" if the line is this worker's now, "=" if it is
// another's, and the mark of its line if it has one. While the store is away it
// waits; ok is false if over was closed first.
func (c *claims) take(id string, over <-chan struct{}) (state string, ok bool) {
	for said := false; ; {
		state, err := c.run(takeScript, c.me, field(id))
		if err == nil {
			if said {
				c.say("the store is back")
			}
			return state, true
		}
		if !said {
			c.say("the store is away; no new request is taken until it is back")
			said = true
		}
		select {
		case <-over:
			return "", false
		case <-time.After(time.Second):
		}
	}
}

// note tells the store of a line that was written. It reports false if another worker's
// line was first. While the store is away the line is noted later.
func (c *claims) note(n noted) (first bool) {
	state, err := c.run(noteScript, field(n.id), n.mark)
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.owed = append(c.owed, n)
		return true
	}
	return state == ""
}

// payOff notes what could not be noted in its time.
func (c *claims) payOff() {
	c.mu.Lock()
	owed := c.owed
	c.owed = nil
	c.mu.Unlock()
	for _, n := range owed {
		if !c.note(n) {
			c.say("a request was answered twice, as the store was away; the next run of this command takes one line out")
		}
	}
}

// release gives up a line that got no answer, so that another worker may try.
func (c *claims) release(id string) { c.run(dropScript, field(id), "="+c.me) }

// forget takes out a line that is taken out of the file too.
func (c *claims) forget(n noted) error {
	_, err := c.run(dropScript, field(n.id), n.mark)
	return err
}

// adopt notes lines that an earlier run has written, many at once. It returns the
// ids of those that another worker has answered too.
func (c *claims) adopt(all []noted) (twice []string, err error) {
	ctx := context.Background()
	p := c.client.Pipeline()
	results := make([]*redis.Cmd, len(all))
	for i, n := range all {
		results[i] = noteScript.Eval(ctx, p, []string{c.lines, c.workers}, field(n.id), n.mark)
	}
	if _, err := p.Exec(ctx); err != nil {
		return nil, err
	}
	for i, r := range results {
		if state, err := r.Text(); err != nil {
			return nil, err
		} else if state != "" {
			twice = append(twice, all[i].id)
		}
	}
	return twice, nil
}

// known marks what other workers have answered. failed is how many of those have no 2xx.
func (c *claims) known(done *ids) (failed int64, err error) {
	ctx := context.Background()
	i := c.client.HScan(ctx, c.lines, 0, "", 1000).Iterator()
	for i.Next(ctx) {
		f := i.Val()
		if !i.Next(ctx) {
			break
		}
		if mark := i.Val(); len(f) == 16 && !strings.HasPrefix(mark, "=") {
			if done.markKey([16]byte([]byte(f)), answered)&answered == 0 && strings.HasPrefix(mark, "-") {
				failed++
			}
		}
	}
	return failed, i.Err()
}

// Close ends the lease: what this worker has not answered is the others'.
func (c *claims) Close() error {
	close(c.quit)
	c.ran.Wait()
	c.payOff()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := c.client.ZRem(ctx, c.workers, c.me).Err()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.owed) > 0 {
		err = errors.Join(err, fmt.Errorf("%d lines are not noted in the store; run the same command again before other workers go on", len(c.owed)))
	}
	return err
}
