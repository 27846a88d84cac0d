package tiktoken

import "strings"

// Overhead is what a chat request costs beyond its texts, in tokens. A part may
// be negative.
type Overhead struct {
	Message int64 // each message
	Name    int64 // each message that has a name
	Reply   int64 // once: the start of the answer

	Functions  int64 // once if there are functions
	Function   int64 // each function
	Properties int64 // each function that has properties
	Property   int64 // each property
	Enum       int64 // each property that has an enum
	EnumItem   int64 // each value of an enum
}

// overheadTable has the rule of modelTable: longest name first, the first row
// that fits decides. What no row fits counts as the last row, the newest family
// for which there are published figures.
//
// Source: openai/openai-cookbook, examples/How_to_count_tokens_with_tiktoken.ipynb.
// It publishes totals for a sample chat next to what the API reported: 127, 129
// and 124 for the three rows' models, and 105 and 101 for a chat with a function
// on the later two. It calls the figures an estimate that may change with a model.
// It has no figures for functions on gpt-3.5-turbo-0301, which took none.
var overheadTable = []struct {
	name     string
	overhead Overhead
}{
	{"gpt-3.5-turbo-0301", Overhead{Message: 4, Name: -1, Reply: 3}},
	{"gpt-35-turbo-0301", Overhead{Message: 4, Name: -1, Reply: 3}},
	{"gpt-3.5-turbo", overheadGPT4},
	{"gpt-35-turbo", overheadGPT4},
	{"gpt-4", overheadGPT4},
	{"*", Overhead{Message: 3, Name: 1, Reply: 3, Functions: 12, Function: 7, Properties: 3, Property: 3, Enum: -3, EnumItem: 3}},
}

var overheadGPT4 = Overhead{Message: 3, Name: 1, Reply: 3, Functions: 12, Function: 10, Properties: 3, Property: 3, Enum: -3, EnumItem: 3}

// Overhead returns what a chat costs beyond its texts on a model.
//
// It is published for GPT-3.5, GPT-4 and GPT-4o only. Any other model is taken
// for the last of these.
func (c *Counter) Overhead(model string) Overhead {
	model = baseModel(c.resolve(model))
	for i := range overheadTable {
		if fits(overheadTable[i].name, model) {
			return overheadTable[i].overhead
		}
	}
	return Overhead{} // not reached: the last row fits all
}

// A Message is one message of a chat. Name may be empty.
type Message struct {
	Role, Name, Content string
}

// A Function is a function that a chat offers to the model, also called a tool.
type Function struct {
	Name, Description string
	Properties        []Property // of its parameters, the outermost only
}

// A Property is one parameter of a Function.
type Property struct {
	Name, Type, Description string
	Enum                    []string
}

// Chat returns the number of prompt tokens of a chat by the published rule of
// [Overhead]. The rule covers text messages and functions with flat parameters;
// images, tool calls and nested schemas have no published count.
func (c *Counter) Chat(model string, messages []Message, functions []Function) int64 {
	v := c.vocabulary(model)
	s := scratches.Get().(*scratch)
	o := c.Overhead(model)
	n := o.Reply
	for _, m := range messages {
		n += o.Message + v.countLine(s, m.Role) + v.countLine(s, m.Content)
		if m.Name != "" {
			n += o.Name + v.countLine(s, m.Name)
		}
	}
	if len(functions) > 0 {
		n += o.Functions
	}
	for _, f := range functions {
		n += o.Function + v.countLine(s, f.Name, ":", strings.TrimSuffix(f.Description, "."))
		if len(f.Properties) > 0 {
			n += o.Properties
		}
		for _, p := range f.Properties {
			n += o.Property + v.countLine(s, p.Name, ":", p.Type, ":", strings.TrimSuffix(p.Description, "."))
			if len(p.Enum) > 0 {
				n += o.Enum
			}
			for _, item := range p.Enum {
				n += o.EnumItem + v.countLine(s, item)
			}
		}
	}
	s.release()
	return n
}

// countLine counts parts joined into one text, as the pieces go over their
// borders. Without a vocabulary it is a quarter of the bytes.
func (v *vocabulary) countLine(s *scratch, parts ...string) int64 {
	b := s.text[:0]
	for _, p := range parts {
		b = append(b, p...)
	}
	s.text = b
	if v == nil {
		return quarter(int64(len(b)))
	}
	return v.countText(s, b)
}
