package estimate

type Calibrator struct{}

func (*Calibrator) Scale(model string, n int64) int64       { return n }
func (*Calibrator) Observe(model string, est, actual int64) {}

type Learner struct{}

func (*Learner) Learned(model string) int64        { return 0 }
func (*Learner) Observe(model string, output int64) {}
