-- The client's side of the benchmark: an authenticated tools/call of BENCH_TOOL, an echo, as revision 2026-07-28
-- writes it. BENCH_TOKEN is the bearer token (may be empty). Every body is looked at: an answer that
-- is not the echo counts as an error.

local token = os.getenv("BENCH_TOKEN") or ""
local tool = os.getenv("BENCH_TOOL") or "echo"
local bodies = 256

local template = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"' .. tool .. '",'
  .. '"arguments":{"text":"hello %d"},"_meta":{'
  .. '"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
  .. '"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},'
  .. '"io.modelcontextprotocol/clientCapabilities":{}}}}'

local threads = {}
local requests = {}
local turn = 0
wrong = 0

function setup(thread)
  table.insert(threads, thread)
end

function init(args)
  local headers = {
    ["Content-Type"] = "application/json",
    ["Accept"] = "application/json, text/event-stream",
    ["MCP-Protocol-Version"] = "2026-07-28",
    ["Mcp-Method"] = "tools/call",
    ["Mcp-Name"] = tool,
  }
  if token ~= "" then
    headers["Authorization"] = "Bearer " .. token
  end
  for i = 1, bodies do
    requests[i] = wrk.format("POST", nil, headers, string.format(template, i, i))
  end
end

function request()
  turn = turn % bodies + 1
  return requests[turn]
end

function response(status, headers, body)
  if not body:find('"text":"hello ', 1, true) or body:find('"isError":true', 1, true) then
    wrong = wrong + 1
  end
end

function done(summary, latency, _)
  local unlike = 0
  for _, thread in ipairs(threads) do
    unlike = unlike + thread:get("wrong")
  end
  local e = summary.errors
  io.write(string.format(
    'bench {"requests":%d,"microseconds":%d,"errors":%d,"p50":%d,"p99":%d}\n',
    summary.requests, summary.duration,
    math.max(e.status, unlike) + e.connect + e.read + e.write + e.timeout,
    latency:percentile(50), latency:percentile(99)))
end
