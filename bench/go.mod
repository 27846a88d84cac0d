module github.com/tripmeter/tripmeter/bench

go 1.26.0

require (
	github.com/tripmeter/tripmeter v0.0.0
	golang.org/x/time v0.16.0
)

require (
	github.com/andybalholm/brotli v1.3.0 // indirect
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/hashicorp/go-retryablehttp v0.7.8 // indirect
	github.com/klauspost/compress v1.20.4 // indirect
)

replace github.com/tripmeter/tripmeter => ../
