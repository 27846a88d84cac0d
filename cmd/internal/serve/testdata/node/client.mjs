// A client as its users write it: the official SDK with a base URL, and nothing
// that knows of a gateway. It prints what it saw as JSON.
//
//	node client.mjs openai|anthropic BASE_URL REQUESTS CONCURRENCY
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";

const [api, baseURL, requests, concurrency] = process.argv.slice(2);
const seen = { answered: 0, streamed: 0, text: 0, refused: 0, failed: [] };
const messages = [{ role: "user", content: "Say abc." }];

const openai = api === "openai" && new OpenAI({ apiKey: process.env.KEY, baseURL: baseURL + "/v1" });
const anthropic = api === "anthropic" && new Anthropic({ apiKey: process.env.KEY, baseURL });

async function one(n) {
  const stream = n % 2 === 1;
  if (openai) {
    const ask = { model: "gpt-4o-mini", max_tokens: 20, messages };
    if (!stream) {
      const whole = await openai.chat.completions.create(ask);
      seen.text += whole.choices[0].message.content.length;
      seen.answered++;
      return;
    }
    for await (const chunk of await openai.chat.completions.create({ ...ask, stream: true })) {
      seen.text += chunk.choices[0]?.delta?.content?.length ?? 0;
    }
    seen.streamed++;
    return;
  }
  const ask = { model: "claude-haiku-4-5", max_tokens: 20, messages };
  if (!stream) {
    const whole = await anthropic.messages.create(ask);
    seen.text += whole.content[0].text.length;
    seen.answered++;
    return;
  }
  for await (const event of await anthropic.messages.create({ ...ask, stream: true })) {
    seen.text += event.delta?.text?.length ?? 0;
  }
  seen.streamed++;
}

let next = 0;
async function worker() {
  while (next < Number(requests)) {
    try {
      await one(next++);
    } catch (e) {
      if (e.status === 429) seen.refused++;
      else seen.failed.push(String(e).slice(0, 200));
    }
  }
}
await Promise.all(Array.from({ length: Number(concurrency) }, worker));
console.log(JSON.stringify(seen));
