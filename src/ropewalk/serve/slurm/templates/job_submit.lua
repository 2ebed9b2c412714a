-- Asks ropewalk for the nodes of every job that is submitted. Slurm goes on without it when it does not answer:
-- the job is placed by Slurm alone, and its AdminComment and a line for its user say so.
-- Lua 5.1 and lua-socket. Written by `ropewalk serve slurm-files`.

local SOCKET = "@SOCKET@"
local WAIT = @WAIT@            -- seconds for one question, all in all
local PAUSE = @PAUSE@          -- seconds without questions after one that failed
local OPERATORS = { @OPERATORS@ }  -- user ids that may change anything: root and SlurmUser
local LONGEST = 65536          -- bytes of an answer

local loaded, socket = pcall(require, "socket")
local unix
if loaded then
  loaded, unix = pcall(require, "socket.unix")
end

local closed_until, last_failure = 0, nil

-- Any bytes as a form value: names and comments of jobs are whatever their users typed.
local function encoded(value)
  return (tostring(value):gsub("[^%w_.-]", function(letter)
    return string.format("%%%02X", letter:byte())
  end))
end

local function form(fields)
  local parts = {}
  for name, value in pairs(fields) do
    parts[#parts + 1] = name .. "=" .. encoded(value)
  end
  return table.concat(parts, "&")
end

-- The lines `key value` of an answer.
local function read_answer(text)
  local status, body = text:match("^HTTP/1%.[01] (%d+).-\r\n\r\n(.*)$")
  if status ~= "200" then
    return nil, "it answered " .. (status or "nonsense")
  end
  local answer = {}
  for key, value in body:gmatch("(%l+) ([^\n]*)\n") do
    answer[key] = value
  end
  return answer
end

-- One request over the socket; every wait counts against the same deadline.
local function exchange(path, fields)
  local deadline = socket.gettime() + WAIT
  local line = unix()
  local function left()
    local seconds = deadline - socket.gettime()
    line:settimeout(seconds > 0 and seconds or 0)
    return seconds > 0
  end
  left()
  local ok, problem = line:connect(SOCKET)
  if not ok then
    line:close()
    return nil, "cannot connect (" .. tostring(problem) .. ")"
  end
  local body = form(fields)
  local request = "POST " .. path .. " HTTP/1.0\r\nHost: localhost\r\nConnection: close\r\n"
    .. "Content-Type: application/vnd.ropewalk.form\r\nContent-Length: " .. #body .. "\r\n\r\n" .. body
  local sent, at, pieces, size = 0, nil, {}, 0
  while sent < #request do
    if not left() then line:close(); return nil, "timeout" end
    at, problem = line:send(request, sent + 1)
    if not at then line:close(); return nil, tostring(problem) end
    sent = at
  end
  while size < LONGEST do
    if not left() then line:close(); return nil, "timeout" end
    local piece, why, partial = line:receive(4096)
    pieces[#pieces + 1] = piece or partial
    size = size + #(piece or partial or "")
    if why == "closed" then
      line:close()
      return read_answer(table.concat(pieces))
    elseif why and why ~= "timeout" then
      line:close()
      return nil, why
    end
  end
  line:close()
  return nil, "its answer is too long"
end

-- An answer, or nil and why there is none. After a failure nobody asks again for a while.
local function ask(path, fields)
  if not loaded then
    return nil, "lua-socket is not installed"
  end
  local now = socket.gettime()
  if now < closed_until then
    return nil, last_failure
  end
  local ran, answer, problem = pcall(exchange, path, fields)
  if ran and answer then
    last_failure = nil
    return answer
  end
  last_failure = ran and problem or tostring(answer)
  closed_until = socket.gettime() + PAUSE
  slurm.log_info("ropewalk: %s; not asked again for %s s", last_failure, tostring(PAUSE))
  return nil, last_failure
end

local function number(value, nothing)
  if value == nil or value == nothing or value == slurm.NO_VAL or value == slurm.INFINITE then
    return nil
  end
  return value
end

local function partition_of(job, partitions)
  if job.partition then
    return job.partition
  end
  for name, partition in pairs(partitions) do
    if partition.flag_default == 1 then
      return name
    end
  end
  return nil
end

-- What ropewalk wants to know of a job; what is not set is not sent.
local function asked(job, partitions, user_id)
  local fields = {
    name = job.name or "job",
    user = job.user_name or tostring(user_id),
    partition = partition_of(job, partitions),
    nodes = number(job.min_nodes),
    tasks = number(job.num_tasks),
    tasks_per_node = number(job.ntasks_per_node, slurm.NO_VAL16),
    gpus = job.tres_per_job,
    required = job.req_nodes,
    excluded_nodes = job.exc_nodes,
    features = job.features,
    resv_name = job.reservation,
    dependency = job.dependency,
    array = job.array_inx,
    limit = number(job.time_limit),
    priority = number(job.priority),
  }
  if number(job.het_job_offset) then
    fields.het = 1
  end
  if job.begin_time and job.begin_time > os.time() then
    fields.begin = job.begin_time
  end
  return fields
end

local function submitted(job, partitions, user_id)
  local answer, problem = ask("/v1/slurm/submit", asked(job, partitions, user_id))
  if not answer then
    job.admin_comment = "ropewalk: not placed by ropewalk: " .. problem
    slurm.log_user("ropewalk does not answer (%s): Slurm places this job alone", problem)
    return slurm.SUCCESS
  end
  job.admin_comment = answer.comment or ""
  if answer.say then
    slurm.log_user("%s", answer.say)
  end
  if answer.decision == "refuse" then
    return slurm.ESLURM_INVALID_NODE_COUNT
  end
  if answer.decision == "start" then
    job.req_nodes = answer.nodes
  end
  if answer.count then
    job.min_nodes, job.max_nodes = tonumber(answer.count), tonumber(answer.count)
  end
  if answer.decision == "hold" then
    job.priority = 0
  end
  return slurm.SUCCESS
end

-- Users may not undo what ropewalk has arranged for their job while ropewalk is there.
local function refused_change(change, record)
  local comment = record.admin_comment or ""
  if not comment:match("^ropewalk token=") then
    return nil
  end
  if number(change.min_nodes) or number(change.max_nodes) or change.req_nodes or change.exc_nodes
    or change.features or change.partition then
    return "ropewalk has arranged its nodes: cancel the job and submit it again"
  end
  -- A release sets the priority to INFINITE, which `number` takes for "not set".
  local released = change.priority and change.priority ~= slurm.NO_VAL and change.priority ~= 0
  if released and record.priority == 0 and comment:match(" hold") and ask("/v1/slurm/alive", {}) then
    return "ropewalk starts this job when its links are free: `ropewalk cluster explain` says what it waits for"
  end
  return nil
end

-- An error in here must never keep a job from being submitted or changed.
function slurm_job_submit(job, partitions, user_id)
  local ran, answer = pcall(submitted, job, partitions, user_id)
  if ran then
    return answer
  end
  slurm.log_error("ropewalk: job_submit.lua: %s", tostring(answer))
  return slurm.SUCCESS
end

function slurm_job_modify(change, record, partitions, user_id)
  if OPERATORS[user_id] then
    return slurm.SUCCESS
  end
  local ran, answer = pcall(refused_change, change, record)
  if ran and answer then
    -- `scontrol update` shows the line to its user, `scontrol release` only the code.
    slurm.log_user("%s", answer)
    slurm.log_info("ropewalk: a change of job %s by user %s: %s", tostring(record.job_id), tostring(user_id), answer)
    return slurm.ESLURM_ACCESS_DENIED
  elseif not ran then
    slurm.log_error("ropewalk: job_submit.lua: %s", tostring(answer))
  end
  return slurm.SUCCESS
end

slurm.log_info("ropewalk: job_submit.lua asks %s", SOCKET)
return slurm.SUCCESS
