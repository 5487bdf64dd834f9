-- The client's side of a call of two legs: a tools/call of BENCH_TOOL, which asks one question, and the
-- retry with its answer. BENCH_TOKEN is the bearer token (may be empty). Whatever connection is free
-- takes the next leg: a retry if some call waits for one, else a first leg. Every body is looked at:
-- what is neither a question nor the right end counts as an error.

local token = os.getenv("BENCH_TOKEN") or ""
local tool = os.getenv("BENCH_TOOL") or "ask"

local meta = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
  .. '"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},'
  .. '"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}'
local call = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"' .. tool
  .. '","arguments":{"text":"hello"},' .. meta
local retry = ',"requestState":"%s","inputResponses":{"%s":{"action":"accept","content":{"sure":true}}}'

local threads = {}
local headers = {}
local waiting = {}
local turn = 0
wrong = 0
finished = 0

function setup(thread)
  table.insert(threads, thread)
end

function init(args)
  headers = {
    ["Content-Type"] = "application/json",
    ["Accept"] = "application/json, text/event-stream",
    ["MCP-Protocol-Version"] = "2026-07-28",
    ["Mcp-Method"] = "tools/call",
    ["Mcp-Name"] = tool,
  }
  if token ~= "" then
    headers["Authorization"] = "Bearer " .. token
  end
end

function request()
  turn = turn + 1
  local body = string.format(call, turn)
  local next = table.remove(waiting)
  if next then
    body = body .. string.format(retry, next[1], next[2])
  end
  return wrk.format("POST", nil, headers, body .. "}}")
end

function response(status, _, body)
  local state = body:match('"requestState":"([^"]+)"')
  local key = body:match('"inputRequests":{"([^"]+)"')
  if state and key then
    table.insert(waiting, { state, key })
  elseif body:find('"text":"hello', 1, true) and not body:find('"isError":true', 1, true) then
    finished = finished + 1
  else
    wrong = wrong + 1
  end
end

function done(summary, latency, _)
  local unlike, calls = 0, 0
  for _, thread in ipairs(threads) do
    unlike = unlike + thread:get("wrong")
    calls = calls + thread:get("finished")
  end
  local e = summary.errors
  io.write(string.format(
    'bench {"requests":%d,"microseconds":%d,"errors":%d,"p50":%d,"p99":%d}\n',
    calls, summary.duration,
    math.max(e.status, unlike) + e.connect + e.read + e.write + e.timeout,
    latency:percentile(50), latency:percentile(99)))
end
