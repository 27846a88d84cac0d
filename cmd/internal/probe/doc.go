// Package probe is the command "tripmeter probe": it asks a provider a few
// small questions and says what its answers show of the limits.
//
// The promise: each line was seen in the answers, or says that it comes from the
// profile, or that it is not known. A recording holds rate fields, statuses,
// usage and times, and nothing that names the caller.
//
// The refusal: the probe does not try how much it takes to be refused.
package probe
