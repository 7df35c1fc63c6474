// A tiny language model behind one route, POST /v1/chat/completions without streaming: node server.mjs MODEL.gguf
// Prints its port when it is ready. Answers the last message; one call at a time.
import { createServer } from "node:http";
import { getLlama, LlamaChatSession } from "node-llama-cpp";

const llama = await getLlama({ gpu: false, build: "never", logLevel: "error" });
const model = await llama.loadModel({ modelPath: process.argv[2] });

async function answer({ messages, max_tokens: maxTokens = 32 }) {
  // One thread: several spin while they wait for each other, and on a busy machine that takes minutes.
  const context = await model.createContext({ contextSize: 512, threads: 1 });
  const sequence = context.getSequence();
  try {
    const session = new LlamaChatSession({ contextSequence: sequence });
    const content = await session.prompt(messages.at(-1).content, { maxTokens, temperature: 0.8 });
    const { usedInputTokens, usedOutputTokens } = sequence.tokenMeter.getState();
    return {
      id: "1",
      object: "chat.completion",
      created: 1,
      model: "smollm2",
      choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content } }],
      usage: {
        prompt_tokens: usedInputTokens,
        completion_tokens: usedOutputTokens,
        total_tokens: usedInputTokens + usedOutputTokens,
      },
    };
  } finally {
    await context.dispose();
  }
}

const server = createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  const text = JSON.stringify(await answer(JSON.parse(body)));
  response.writeHead(200, { "content-type": "application/json" }).end(text);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
