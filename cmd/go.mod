module github.com/tripmeter/tripmeter/cmd

go 1.26.0

replace github.com/tripmeter/tripmeter => ../

require (
	github.com/pelletier/go-toml/v2 v2.4.3
	github.com/tripmeter/tripmeter v0.0.0
	golang.org/x/sys v0.20.0
)

require (
	github.com/dunglas/httpsfv v1.1.2 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/hashicorp/go-retryablehttp v0.7.8 // indirect
)
