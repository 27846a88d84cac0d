package tiktoken_test

import (
	"fmt"

	"github.com/tripmeter/tripmeter/estimate/tiktoken"
)

func Example() {
	c := tiktoken.New(tiktoken.Options{
		Models: map[string]string{"prod-chat": "gpt-4o"}, // an Azure deployment
	})
	fmt.Println(c.CountString("gpt-4o", "tiktoken is great!"))
	fmt.Println(c.CountString("prod-chat", "tiktoken is great!"))
	fmt.Println(c.CountString("gpt-9-preview", "tiktoken is great!"), c.Fallbacks())
	// Output:
	// 6
	// 6
	// 6 1
}

// The text of a JSON body need not be decoded first.
func ExampleCounter_CountJSON() {
	c := tiktoken.New(tiktoken.Options{})
	fmt.Println(c.CountJSON("gpt-4o", []byte(`\u304a\u8a95\u751f\u65e5\u304a\u3081\u3067\u3068\u3046`)))
	fmt.Println(c.CountString("gpt-4o", "お誕生日おめでとう"))
	// Output:
	// 8
	// 8
}

func ExampleCounter_Chat() {
	c := tiktoken.New(tiktoken.Options{})
	fmt.Println(c.Chat("gpt-4o", []tiktoken.Message{
		{Role: "system", Content: "You are a helpful assistant that can answer to questions about the weather."},
		{Role: "user", Content: "What's the weather like in San Francisco?"},
	}, nil))
	// Output:
	// 33
}

// An estimator that counts in thousandths of a token wraps a Counter in one line.
func ExampleCounter_adapter() {
	c := tiktoken.New(tiktoken.Options{})
	milli := func(model string, raw []byte) int64 { return 1000 * c.CountJSON(model, raw) }
	fmt.Println(milli("gpt-4o", []byte(`Hello,\nworld!`)))
	// Output:
	// 4000
}
