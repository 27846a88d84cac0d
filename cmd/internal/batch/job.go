package batch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tripmeter/tripmeter/cmd/internal/meter"
	"github.com/tripmeter/tripmeter/cmd/internal/store"
	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/internal/batchfile"
	"github.com/tripmeter/tripmeter/retry"
)

const (
	// ahead is how many requests stand in the limiter's line at once. The line is
	// fair, so a few are enough to keep it moving, and the rest of the file stays
	// on disk.
	ahead = 64
	// parked is how many requests of lanes that are held, or that wait to be sent
	// again, are kept in memory. Above it nothing more is read.
	parked = 1024
	// maxAnswer bounds an answer that is kept, in bytes.
	maxAnswer = 256 << 20
)

// job sends the requests of a file. Its goroutine run owns all fields but those
// of sync types; senders report to it through ends.
type job struct {
	*config
	shared   *store.Store // nil: there are no other workers
	sender   *meter.Meter
	client   *http.Client // through sender
	requests io.Reader
	out      *answers
	errs     *answers // nil: everything goes to out
	done     *ids
	p        *progress
	tape     *tape   // nil: nothing is recorded
	claims   *claims // nil without shared

	all      lane // what concerns every model
	lanes    map[string]*lane
	queued   int // items in the lanes' queues
	underWay int
	waiting  atomic.Int64 // begun and not admitted yet
	planned  nano         // estimates of what is under way
	begun    time.Time

	items chan item
	eof   bool // items has no more
	ends  chan end
	wake  chan struct{}
	long  chan order

	gate   *gate
	flying map[*sending]bool
	halted bool
	broken error // the first error of reading the input or writing the output
	why    reason
	last   reason // of the request that was left last
	left   int64  // requests that were read and got no line

	failedBefore int64 // lines of earlier runs without a 2xx
}

// reason is why a job ended before the end of its file.
type reason struct {
	kind   kind // what did not pass, or withdrawn, or spent
	detail string
	held   time.Duration
}

// item is a line of the input on its way.
type item struct {
	line    int
	request batchfile.Request
	model   string
	bad     error
	skip    bool
	failed  bool  // skip, and another worker's answer is an error
	end     error // io.EOF, or why no more can be read

	tries  int
	first  time.Time // of the first end that failed
	before int64     // successes of the lane at that time
	after  time.Time // not to be sent again before
	plan   nano      // what it may cost
}

// end is the end of one sending.
type end struct {
	it *item
	s  *sending
	o  outcome
}

// order is a wait that the server orders and that is longer than -max-wait.
type order struct {
	model string
	d     time.Duration
}

// sending is one request on its way. Its context carries it, so that the
// meter's hooks find it.
type sending struct {
	lane    *lane
	probe   bool
	wires   [2]*wire // of the model, and of all
	marks   [2]int   // guarded by the gate
	cancel  context.CancelFunc
	queued  func()      // lets the next request step up behind it
	granted func()      // it left the line
	entered bool        // it passed the gate, which guards it
	onWire  atomic.Bool // a connection was got for it
}

type sendingKey struct{}

func sendingOf(r *http.Request) *sending {
	s, _ := r.Context().Value(sendingKey{}).(*sending)
	return s
}

func newJob(c *config, requests io.Reader, p *progress) *job {
	p.priced = c.prices != nil
	return &job{
		config: c, requests: requests, p: p, done: newIDs(),
		lanes: map[string]*lane{}, flying: map[*sending]bool{}, gate: newGate(),
		items: make(chan item), ends: make(chan end), wake: make(chan struct{}, 1), long: make(chan order, 1),
	}
}

// run sends everything that has no line yet. It reports whether it came to the
// end of the file with a line for each request.
func (j *job) run(ctx context.Context, stop <-chan struct{}, abort <-chan struct{}) (finished bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	j.begun = time.Now()
	j.all.born = j.begun
	clock := time.NewTimer(0)
	defer clock.Stop()
	over := make(chan struct{})
	defer close(over)
	go j.read(over)
	for {
		now := time.Now()
		j.checkHolds(now)
		it, retryAt := j.next(now)
		if it != nil && j.affordable(it) {
			j.begin(ctx, it)
			continue
		}
		var in <-chan item
		var timer <-chan time.Time
		switch {
		case it != nil:
			j.put(it) // until something under way has ended
			if j.underWay == 0 {
				j.stop(reason{kind: spent})
				continue
			}
		case j.idle():
			return j.conclude()
		default:
			if j.wantsInput(now) {
				in = j.items
			}
			if !retryAt.IsZero() {
				clock.Reset(max(0, time.Until(retryAt)))
				timer = clock.C
			}
		}
		select {
		case got := <-in:
			j.receive(&got)
		case e := <-j.ends:
			j.fail(j.ended(e), "the output cannot be written")
		case o := <-j.long:
			l := j.lane(o.model)
			j.shut(l, tooFast, fmt.Sprintf("the server orders a wait of %v", o.d.Round(time.Second)))
		case <-j.wake:
		case <-timer:
		case <-stop:
			stop = nil
			j.p.halting("finishing what is under way; once more stops at once")
			j.stop(reason{kind: withdrawn})
		case <-abort:
			abort = nil
			cancel()
		}
	}
}

// idle reports whether nothing is under way and nothing more is begun.
func (j *job) idle() bool {
	return j.underWay == 0 && (j.halted || j.eof && j.queued == 0)
}

// conclude ends an idle job: it counts what is left, and why. finished reports
// whether each request has its line.
func (j *job) conclude() (finished bool, err error) {
	if j.halted {
		j.left += int64(j.queued)
	}
	err = errors.Join(j.broken, j.settleRefused())
	if !j.halted && j.left > 0 && j.why.kind == good {
		j.why = j.last
	}
	return !j.halted && j.left == 0, err
}

// fail stops the job at the first error of a file.
func (j *job) fail(err error, what string) {
	if err != nil && j.broken == nil {
		j.broken = err
		j.stop(reason{kind: withdrawn, detail: what})
	}
}

// full reports whether enough requests are under way, or in the limiter's line.
func (j *job) full() bool {
	return j.waiting.Load() >= ahead || j.underWay >= j.inFlight+ahead
}

// wantsInput reports whether the job has room for another line of the input.
func (j *job) wantsInput(now time.Time) bool {
	return !j.eof && !j.halted && j.queued < parked && !j.full() && j.room(&j.all, now) > 0
}

// receive takes in a line of the input, or its end.
func (j *job) receive(it *item) {
	if it.end == nil {
		j.fail(j.take(it), "the output cannot be written")
		return
	}
	j.eof = true
	if it.end != io.EOF {
		j.fail(it.end, "the input cannot be read")
	}
}

// lane is the lane of a model.
func (j *job) lane(model string) *lane {
	l := j.lanes[model]
	if l == nil {
		l = &lane{model: model, born: time.Now()}
		j.lanes[model] = l
	}
	return l
}

// room is how many more requests of a lane may be begun now. Before the first
// answer, where no limit is configured, one a second goes: nothing else would
// hold them.
func (j *job) room(l *lane, now time.Time) int {
	row := j.gate.row(l)
	n := l.room(now, row)
	if l.successes == 0 && row == 0 && !j.limited(l.model) {
		n = min(n, 1+int(now.Sub(l.born)/time.Second)-l.underWay)
	}
	return n
}

// next takes the next request that may go now from the queues. If there is
// none, at is when the first of them may.
func (j *job) next(now time.Time) (it *item, at time.Time) {
	if j.halted || j.full() {
		return nil, time.Time{}
	}
	soonest := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	blind := func(l *lane) time.Time { return l.born.Add(now.Sub(l.born).Truncate(time.Second) + time.Second) }
	if j.room(&j.all, now) <= 0 {
		if j.all.held && !j.all.probing {
			soonest(j.all.next)
		} else if j.all.successes == 0 {
			soonest(blind(&j.all))
		}
		return nil, at
	}
	for _, l := range j.lanes {
		switch {
		case len(l.queue) == 0:
			continue
		case j.room(l, now) <= 0:
			if l.held && !l.probing {
				soonest(l.next)
			} else if l.successes == 0 {
				soonest(blind(l))
			}
			continue
		}
		for _, x := range l.queue {
			if now.Before(x.after) && !l.held && !j.all.held {
				soonest(x.after)
				continue
			}
			if it == nil || x.line < it.line {
				it = x
			}
			break
		}
	}
	if it == nil {
		return nil, at
	}
	l := j.lane(it.model)
	i := slices.Index(l.queue, it)
	l.queue = slices.Delete(l.queue, i, i+1)
	j.queued--
	return it, time.Time{}
}

// put queues a request.
func (j *job) put(it *item) {
	l := j.lane(it.model)
	l.queue = append(l.queue, it)
	j.queued++
}

// checkHolds stops what has been held for longer than -max-wait.
func (j *job) checkHolds(now time.Time) {
	if l := &j.all; l.held && !l.probing && now.Sub(l.since) > j.maxWait {
		j.stop(reason{kind: l.kind, detail: l.detail, held: now.Sub(l.since)})
	}
	for _, l := range j.lanes {
		if l.held && !l.probing && !l.stopped && now.Sub(l.since) > j.maxWait {
			j.shut(l, l.kind, l.detail)
		}
	}
	holding := &j.all
	for _, l := range j.lanes {
		if !holding.held && l.held && !l.stopped {
			holding = l
		}
	}
	if holding.held {
		o := outcome{kind: holding.kind, detail: holding.detail}
		j.p.holding(o.counted()+of(holding.model), holding.next)
	} else {
		j.p.holding("", now)
	}
}

// shut ends a lane for this run: its requests are left for the next one.
func (j *job) shut(l *lane, k kind, detail string) {
	if l.stopped {
		return
	}
	l.stopped, l.kind, l.detail = true, k, detail
	for s := range j.flying {
		if s.lane == l && !s.onWire.Load() {
			s.cancel()
		}
	}
	o := outcome{kind: k, detail: detail}
	for _, it := range l.queue {
		j.leave(it, o)
	}
	j.queued -= len(l.queue)
	l.queue = nil
	for _, e := range l.refused { // they had no answer either
		j.leave(e.it, e.o)
	}
	l.refused = nil
	name := cmp.Or(l.model, "the file")
	j.p.say(fmt.Sprintf("%s: nothing more is sent in this run: %s", name, o.counted()))
	if j.why.kind == good {
		j.why = reason{kind: k, detail: detail}
	}
}

// stop lets go of everything that has no bytes on the wire and begins nothing
// more.
func (j *job) stop(why reason) {
	if j.halted {
		return
	}
	j.halted = true
	if j.why.kind == good || why.kind != withdrawn {
		j.why = why
	}
	j.p.stopping()
	for s := range j.flying {
		if !s.onWire.Load() {
			s.cancel()
		}
	}
}

// take takes in a line of the input.
func (j *job) take(it *item) error {
	switch {
	case it.bad != nil:
		j.p.bad(it.line, it.bad)
		id := j.id(it.line)
		if j.done.mark(batchfile.LineKey(id), answered)&answered != 0 {
			return nil
		}
		return j.write(batchfile.LineKey(id), batchfile.Answer{ID: id, Error: &batchfile.Failure{
			Code: "invalid_line", Message: fmt.Sprintf("line %d: %v", it.line, it.bad),
		}})
	case it.skip:
		if it.failed {
			j.failedBefore++
		}
		j.p.skipped()
		return nil
	}
	it.model = meter.ModelOf(it.request.Body, it.request.URL)
	l := j.lane(it.model)
	if l.stopped {
		j.leave(it, outcome{kind: l.kind, detail: l.detail})
		return nil
	}
	j.put(it)
	return nil
}

// leave notes a request that gets no answer in this run, and why.
func (j *job) leave(it *item, o outcome) {
	j.left++
	j.p.left(o)
	if j.claims != nil {
		j.claims.release(it.request.CustomID)
	}
	j.report(it.line, it.request.CustomID, o)
}

// report writes into the errors, if they have a file of their own, why a request is
// left. The next run takes these lines out. An error of writing is kept by errs.
func (j *job) report(line int, id string, o outcome) {
	if j.errs == nil || j.done.mark(id, reported)&(answered|reported) != 0 {
		return
	}
	j.errs.write(batchfile.Answer{ID: j.id(line), CustomID: &id, Error: &batchfile.Failure{
		Code: leftCode + o.kind.code(), Message: o.counted() + "; the next run sends it",
	}})
}

// reportRest reports the requests that were left unread, or in the middle.
func (j *job) reportRest() error {
	if j.errs == nil || j.config.in == "-" {
		return nil
	}
	f, err := os.Open(j.config.in)
	if err != nil {
		return err
	}
	defer f.Close()
	if i, err := f.Stat(); err != nil || !i.Mode().IsRegular() {
		return err // a pipe can be read once
	}
	o := outcome{kind: j.why.kind, detail: j.why.detail}
	if o.kind == good {
		o.kind = withdrawn
	}
	in := batchfile.NewLines(f)
	for n := 1; ; n++ {
		line, long, err := in.Next()
		if r, bad := batchfile.ParseRequest(line, long); bad == nil {
			j.report(n, r.CustomID, o)
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case j.errs.failed() != nil:
			return nil
		}
	}
}

// affordable reports whether a request may be begun within -max-cost, with all
// that is under way.
func (j *job) affordable(it *item) bool {
	if j.prices == nil {
		return true
	}
	r := estimate.Inspect(it.request.Body, estimate.Options{Path: it.request.URL})
	p, _ := j.prices.of(it.model)
	out := r.OutputCap * r.Choices
	if expected, ok := j.p.expected(it.model); ok {
		if expected *= 2 * r.Choices; out == 0 || expected < out {
			out = expected
		}
	} else if out == 0 && r.Kind != "embeddings" {
		out = estimate.FirstOutput * r.Choices
	}
	it.plan = p.cost(r.Input, 0, out)
	return j.maxCost == 0 || j.p.spent()+j.planned+it.plan <= j.maxCost
}

// begin sends a request.
func (j *job) begin(ctx context.Context, it *item) {
	l := j.lane(it.model)
	s := &sending{lane: l, probe: l.held || j.all.held, wires: [2]*wire{&l.wire, &j.all.wire}}
	if l.held {
		l.probing = true
	}
	if j.all.held {
		j.all.probing = true
	}
	ctx = meter.WithCaller(meter.WithModel(ctx, it.model), "", j.priority == "batch")
	ctx, s.cancel = context.WithCancel(context.WithValue(ctx, sendingKey{}, s))
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { s.onWire.Store(true) }})
	queued := make(chan struct{})
	s.queued = sync.OnceFunc(func() { close(queued) })
	j.waiting.Add(1)
	s.granted = sync.OnceFunc(func() {
		j.waiting.Add(-1)
		select {
		case j.wake <- struct{}{}:
		default:
		}
	})
	j.flying[s] = true
	l.underWay++
	j.all.underWay++
	j.underWay++
	j.planned += it.plan
	j.p.begun()
	go func() {
		o := j.exchange(ctx, s, it)
		j.gate.left(o, s)
		s.granted()
		s.queued()
		j.ends <- end{it, s, o}
	}()
	// The next one is not begun before this one is at the line, so that they
	// stand in the order of the file.
	<-queued
}

// ended takes in the end of a sending. The error is that of writing the answer.
func (j *job) ended(e end) error {
	now := time.Now()
	j.landed(e, now)
	if e.o.kind == withdrawn {
		j.calledBack(e, now)
		return nil
	}
	row, err := j.learn(e, now)
	if err != nil {
		return err
	}
	it, l, o := e.it, e.s.lane, e.o
	unproven := o.kind == final && !o.local && l.successes == 0 // an answer, or a wrong address
	switch {
	case unproven && l.stopped: // the end of a row
		j.leave(it, o)
		return nil
	case unproven:
		l.refused = append(l.refused, e)
		return nil
	case o.kind == noPath && j.all.successes == 0:
		j.all.refused = append(j.all.refused, e)
		return nil
	case o.kind.answers():
		return j.answer(it, o)
	}
	if it.first.IsZero() {
		it.first, it.before = now, l.successes
	}
	if j.halted || l.stopped || !j.again(it, l, row, o, now) {
		j.leave(it, o)
		j.last = reason{kind: o.kind, detail: o.detail}
		return nil
	}
	j.put(it)
	return nil
}

// landed takes a sending out of what is under way.
func (j *job) landed(e end, now time.Time) {
	e.s.cancel()
	delete(j.flying, e.s)
	e.s.lane.underWay--
	j.all.underWay--
	j.underWay--
	j.planned -= e.it.plan
	j.p.ended()
	if e.s.probe {
		e.s.lane.probed(now, j.probeEvery)
		j.all.probed(now, j.probeEvery)
	}
}

// calledBack finds a place for a request that was called back before it was sent.
func (j *job) calledBack(e end, now time.Time) {
	switch l := e.s.lane; {
	case l.stopped:
		j.leave(e.it, outcome{kind: l.kind, detail: l.detail})
	case j.halted:
		j.left++
	default: // refused by the meter itself: once more, in turn
		e.it.after = now.Add(time.Second)
		j.put(e.it)
	}
}

// learn notes what an end says of the server: of the model's lane, or of all. It
// returns the lane that the end speaks of. The error is that of writing answers that
// the first success has proved.
func (j *job) learn(e end, now time.Time) (row *lane, err error) {
	l, o := e.s.lane, e.o
	row = l
	if o.kind.everywhere() {
		row = &j.all
	} else if o.kind != garbled {
		j.all.passed(e.s.probe) // it was reached, and knows the key
	}
	switch {
	case o.kind == good:
		j.all.successes++
		l.successes++
		l.passed(e.s.probe)
		err = j.settle(l)
	case o.kind == final && o.local: // the server never saw it
	case o.kind == final && l.successes > 0:
		l.passed(e.s.probe)
	case o.kind == final && l.held:
		l.passed(e.s.probe) // the server is back; what it says of the request is for the row
		l.failed(now, o.kind, o.detail, 1)
	default:
		was := row.held
		if row.failed(now, o.kind, o.detail, j.gate.row(row)) {
			j.trip(row, o, now, was)
		}
	}
	return row, err
}

// settle writes the lines of ends that spoke of their requests before anything was
// answered. Since something was, they are answers.
func (j *job) settle(l *lane) error {
	for _, x := range []*lane{&j.all, l} {
		for _, e := range x.refused {
			if err := j.answer(e.it, e.o); err != nil {
				return err
			}
		}
		x.refused = nil
	}
	return nil
}

// settleRefused ends a run: what was refused as wrong, and too few times to say
// that it was the address, has its answer. After a row of 404s it was the address.
func (j *job) settleRefused() error {
	if j.why.kind == noPath {
		for _, e := range j.all.refused {
			j.leave(e.it, e.o)
		}
		j.all.refused = nil
	}
	for _, l := range j.lanes {
		if err := j.settle(l); err != nil {
			return err
		}
	}
	return nil
}

// answer writes the line of a request.
func (j *job) answer(it *item, o outcome) error {
	j.p.lined(o)
	j.done.mark(it.request.CustomID, answered)
	return j.write(it.request.CustomID, j.line(it, o))
}

// trip holds a lane whose row is long enough, or stops it where waiting cannot
// help.
func (j *job) trip(row *lane, o outcome, now time.Time, was bool) {
	switch {
	case o.kind == noModel || o.kind == final:
		j.shut(row, o.kind, o.detail)
	case !o.kind.passes():
		j.stop(reason{kind: o.kind, detail: o.detail})
	default:
		row.hold(now, j.probeEvery)
		if !was {
			j.p.say(fmt.Sprintf("%s: %d in a row%s; nothing is sent but one try every %v, for at most %v",
				o.counted(), j.gate.row(row), of(row.model), j.probeEvery, j.maxWait))
		}
	}
}

func of(model string) string {
	if model == "" {
		return ""
	}
	return " of " + model
}

// again decides whether a request is sent once more in this run, and when. A
// request is given up only if others of its model were answered since it first
// failed: then it is not the server.
func (j *job) again(it *item, l, row *lane, o outcome, now time.Time) bool {
	others := l.successes > it.before
	switch {
	case !o.kind.passes():
		// A row of these ends the job; the request itself may go once more when
		// somebody has mended it, in the next run.
		return false
	case row.held:
		it.after = now
		return true
	case o.kind == tooFast:
		if others && now.Sub(it.first) > j.maxWait {
			return false
		}
		it.tries++
	default:
		it.tries++
		if it.tries >= j.attempts || o.never {
			if others || o.never {
				return false
			}
			it.tries = j.attempts - 1
			row.hold(now, j.probeEvery)
			j.p.say(fmt.Sprintf("%s%s: sent %d times; one try every %v, for at most %v", o.counted(), of(row.model), j.attempts, j.probeEvery, j.maxWait))
		}
	}
	ceiling := min(retry.DefaultMaxBackoff, retry.DefaultMinBackoff<<min(it.tries, 10))
	it.after = now.Add(retry.DefaultMinBackoff/2 + rand.N(ceiling))
	return true
}

// id is the id of the line that belongs to a line of the input.
func (j *job) id(line int) string {
	if j.practice {
		return fmt.Sprint(practiceID, line)
	}
	return fmt.Sprint(realID, line)
}

// line is the line of the output for an end.
func (j *job) line(it *item, o outcome) batchfile.Answer {
	id := it.request.CustomID
	return batchfile.Answer{ID: j.id(it.line), CustomID: &id, Response: o.answer, Error: o.failure}
}

// write writes the line of a request: to the errors, if there are any and it is one.
func (j *job) write(key string, a batchfile.Answer) error {
	to, good := j.out, a.Response != nil && a.Response.StatusCode/100 == 2
	if j.errs != nil && !good {
		to = j.errs
	}
	line, err := to.write(a)
	if err != nil || j.claims == nil {
		return err
	}
	if !j.claims.note(noted{key, digest(line, good)}) { // another worker took us for dead
		j.p.say("a request was answered by another worker too; this line is taken back")
		return to.takeBack(line)
	}
	return nil
}

// settled takes in what a call cost.
func (j *job) settled(s meter.Settlement) {
	var cost nano
	if p, ok := j.prices.of(s.Model); ok {
		cost = p.cost(s.Input, s.CachedInput, s.Output)
	}
	j.p.settled(s, cost)
}

// read reads the input, on a goroutine of its own since standard input may
// never say anything.
func (j *job) read(over <-chan struct{}) {
	in := batchfile.NewLines(j.requests)
	var others []place
	for n := 1; ; n++ {
		start := in.At()
		line, long, err := in.Next()
		if len(bytes.TrimSpace(line)) > 0 && (err == nil || err == io.EOF) {
			it := j.itemOf(n, line, long)
			if later, ok := j.claim(&it, over); !ok {
				return
			} else if later {
				others = append(others, place{n, start})
				j.claims.busy.Store(int64(len(others)))
			} else if !j.pass(it, over) {
				return
			}
		}
		if err == io.EOF && !j.readOthers(others, over) {
			return
		}
		if err != nil {
			select {
			case j.items <- item{line: n, end: err}:
			case <-over:
			}
			return
		}
	}
}

// place is where a line of the input is.
type place struct {
	line int
	at   int64
}

// itemOf is the item of a line of the input.
func (j *job) itemOf(n int, line []byte, long bool) item {
	it := item{line: n}
	it.request, it.bad = batchfile.ParseRequest(line, long)
	if id := it.request.CustomID; it.bad == nil {
		before := j.done.mark(id, named)
		if before&named != 0 {
			it.bad = fmt.Errorf("custom_id %q was there before", id)
		}
		it.skip = before&answered != 0
	}
	return it
}

// key is how the line of an item is known.
func (j *job) key(it *item) string {
	if it.bad != nil {
		return batchfile.LineKey(j.id(it.line))
	}
	return it.request.CustomID
}

// claim makes an item this worker's, if there are others. later says that another one
// has it. ok is false if over was closed.
func (j *job) claim(it *item, over <-chan struct{}) (later, ok bool) {
	if j.claims == nil || it.skip || j.done.mark(j.key(it), 0)&answered != 0 {
		return false, true
	}
	state, ok := j.claims.take(j.key(it), over)
	switch {
	case !ok || state == "":
		return false, ok
	case state == "=":
		return true, true
	}
	it.bad, it.skip, it.failed = nil, true, state[0] == '-'
	return false, true
}

func (j *job) pass(it item, over <-chan struct{}) bool {
	select {
	case j.items <- it:
		return true
	case <-over:
		return false
	}
}

// readOthers waits for the lines that other workers have: each is answered by its
// worker in the end, or given up by it, or the worker is dead; then it is ours.
func (j *job) readOthers(others []place, over <-chan struct{}) bool {
	for len(others) > 0 {
		select {
		case <-over:
			return false
		case <-time.After(min(time.Second, j.lease/5)):
		}
		still := others[:0]
		for _, p := range others {
			in := batchfile.NewLines(io.NewSectionReader(j.requests.(io.ReaderAt), p.at, 1<<62-p.at))
			line, long, err := in.Next()
			if err != nil && err != io.EOF {
				return j.pass(item{line: p.line, end: err}, over)
			}
			it := item{line: p.line}
			it.request, it.bad = batchfile.ParseRequest(line, long)
			if later, ok := j.claim(&it, over); !ok {
				return false
			} else if later {
				still = append(still, p)
			} else if !j.pass(it, over) {
				return false
			}
		}
		others = still
		j.claims.busy.Store(int64(len(others)))
	}
	return true
}

var errBroken = errors.New("the answer broke off")

// exchange sends a request once.
func (j *job) exchange(ctx context.Context, s *sending, it *item) outcome {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, batchfile.Join(j.baseURL, it.request.URL), bytes.NewReader(it.request.Body))
	if err != nil {
		return outcome{kind: final, local: true, detail: "url", failure: &batchfile.Failure{Code: "invalid_line", Message: fmt.Sprintf("line %d: url cannot be used", it.line)}}
	}
	j.authorize(req.Header)
	resp, err := j.client.Do(req)
	if err != nil {
		return judgeError(ctx, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case ctx.Err() != nil:
		return outcome{kind: withdrawn}
	case err != nil:
		return outcome{kind: garbled, detail: errBroken.Error()}
	case len(body) > maxAnswer:
		return outcome{kind: final, detail: "answer too long", failure: &batchfile.Failure{
			Code: "answer_too_long", Message: fmt.Sprintf("the answer is longer than %d bytes", maxAnswer)}}
	}
	o := judge(resp.StatusCode, resp.Header.Get("Content-Type"), body)
	o.never = resp.Header.Get("X-Should-Retry") == "false"
	o.answer = &batchfile.Response{
		StatusCode: resp.StatusCode, RequestID: cmp.Or(resp.Header.Get("X-Request-Id"), resp.Header.Get("Request-Id")), Body: batchfile.AsJSON(body),
	}
	return o
}

// authorize sets the key as the provider wants it.
func (c *config) authorize(h http.Header) {
	h.Set("Content-Type", "application/json")
	if c.key == "" {
		return
	}
	h.Set("Authorization", "Bearer "+c.key)
	switch c.profile {
	case "anthropic":
		h.Del("Authorization")
		h.Set("X-Api-Key", c.key)
		h.Set("Anthropic-Version", "2023-06-01")
	case "azure":
		h.Set("Api-Key", c.key)
	}
}
