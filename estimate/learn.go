package estimate

import "sync"

const (
	maxModels    = 256 // models remembered by a Calibrator and by an Output, each
	maxModelName = 256 // bytes; a longer name is not remembered
)

// byModel keeps one T for each of the models used last. Names come from requests,
// so there may be any number. If maxModels are kept and a new model comes,
// byModel forgets the model that learned longest ago.
type byModel[T any] struct {
	mu    sync.Mutex // guards what follows; held for a look-up or one short sort
	m     map[modelKey]*learned[T]
	clock uint64 // answers learned from
}

// A modelKey names a model, and a kind of prompt where kinds learn apart.
type modelKey struct {
	model  string
	traits Traits
}

type learned[T any] struct {
	value T
	used  uint64 // byModel.clock when it last learned
}

// get returns the T of a model, or nil. It needs mu.
func (b *byModel[T]) get(model modelKey) *T {
	if l := b.m[model]; l != nil {
		return &l.value
	}
	return nil
}

// learn returns the T of a model and makes room for it if there is none; nil for a name
// that is too long. It needs mu.
func (b *byModel[T]) learn(model modelKey) *T {
	if len(model.model) > maxModelName {
		return nil
	}
	b.clock++
	l := b.m[model]
	if l == nil {
		if b.m == nil {
			b.m = make(map[modelKey]*learned[T])
		}
		if len(b.m) >= maxModels {
			oldest, at := modelKey{}, b.clock
			for name, l := range b.m {
				if l.used < at {
					oldest, at = name, l.used
				}
			}
			delete(b.m, oldest)
		}
		l = new(learned[T])
		b.m[model] = l
	}
	l.used = b.clock
	return &l.value
}

// window holds the last values, at most windowSize.
type window struct {
	at   [windowSize]int64
	n    int // values held
	next int // where the next goes

	sum           int64 // of the values held: at most 32 * 2^40
	first, second int64 // the two largest of them
}

// windowSize is a compromise: a mean over 32 follows a change within 32 answers, and
// holds the answers that come one time in five near their share.
const windowSize = 32

func (w *window) add(v int64) {
	old, full := w.at[w.next], w.n == windowSize
	w.at[w.next] = v
	w.next = (w.next + 1) % windowSize
	w.n = min(w.n+1, windowSize)
	w.sum += v - old // a place that is free holds 0
	if full && old >= w.second && old != v {
		w.first, w.second = 0, 0 // one of them may have left
		for _, v := range w.at {
			w.rank(v)
		}
		return
	}
	if !full || old != v {
		w.rank(v)
	}
}

// rank makes v one of the two largest values, if it is.
func (w *window) rank(v int64) {
	switch {
	case v > w.first:
		w.first, w.second = v, w.first
	case v > w.second:
		w.second = v
	}
}

// mean returns the mean of the values held, the largest taken for no more than the
// second largest, rounded up; 0 if none is held.
func (w *window) mean() int64 {
	if w.n == 0 {
		return 0
	}
	sum := w.sum
	if w.n > 1 {
		sum -= w.first - w.second
	}
	return ceilDiv(sum, int64(w.n))
}

// An Output learns how many tokens the answers of each model have, for charge
// rules that count what is produced and not the cap. The zero value is ready.
// It is safe for concurrent use. It remembers the 256 models that learned last.
type Output struct {
	models byModel[window]
}

const (
	firstAnswers = 10 // before as many nothing is known
	maxOutput    = 1 << 40
)

// Observe learns from one answer of a model: its output tokens, reasoning
// included. A negative number is ignored.
func (o *Output) Observe(model string, output int64) {
	if output < 0 {
		return
	}
	o.models.mu.Lock()
	defer o.models.mu.Unlock()
	if w := o.models.learn(modelKey{model: model}); w != nil {
		w.add(min(output, maxOutput))
	}
}

// Learned returns how many output tokens an answer of a model has: the mean of the
// last 32, the longest taken for no more than the second longest; at least 1. Before
// ten answers it is 0: not known.
//
// It is a mean, because only the mean has the right sum. Where one answer in five is
// long, a bound at the 75th percentile lost 55 % of the work (docs/estimate.md). One wild
// answer alone changes nothing.
func (o *Output) Learned(model string) int64 {
	o.models.mu.Lock()
	defer o.models.mu.Unlock()
	w := o.models.get(modelKey{model: model})
	if w == nil || w.n < firstAnswers {
		return 0
	}
	return max(w.mean(), 1)
}

// Expect returns the output tokens to expect of the next answer of a model: what
// was [Output.Learned], or [FirstOutput] before that, but no more than limit, the
// request's own cap (0 = not stated).
func (o *Output) Expect(model string, limit int64) int64 {
	expect := o.Learned(model)
	if expect == 0 {
		expect = FirstOutput
	}
	if limit > 0 {
		expect = min(expect, limit)
	}
	return expect
}
