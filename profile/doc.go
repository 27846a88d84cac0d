// Package profile holds what is known of providers: how each charges a call,
// which of its limits count what, what its refusals cost and how its headers
// are to be read. It is data, each row with its source and date.
//
// The promise: a limiter that mirrors the provider's rule gets the whole quota
// with no refusal. The wrong rule costs most of the quota, or thousands of
// refusals.
//
// It holds no limits: those differ from account to account, and are configured
// or learned from headers. What no source states is left unset, which is what
// an unknown provider gets.
//
// A profile is chosen by host ([ForHost]) or set by hand ([ByName], or your
// own).
package profile
