-- One call of one process: what ended, what changed, who asks, in that order.
--
-- KEYS[1] is the prefix of the budget, with a hash tag, so that every key below
-- lies in one slot. ARGV[1] is a MessagePack array; call.go has its order.
--
-- Numbers in Lua are doubles, exact up to 2^53. A level is therefore two of them:
-- whole units, and a remainder in grains, W grains to a unit, W in microseconds.
--   0 <= remainder < W < 2^45,  |units| <= 2^52,  N <= 10^12 < 2^40
-- A product that may pass 2^53 goes through muldiv, which splits it. What a call
-- brings is bounded, so that no sum passes 2^53:
--   a refund 2^50, so 2^51 in tokens      a cost 10^12 + 1, so twice that in tokens
--   a span 2^52 us, and now is < 2^51     all who wait in a scope 2^51 units together
--
-- Constants are put in by script.go: Lua would look them up at every use. What most
-- calls do not need is defined inside rest(), for a definition costs time as well.

local P45, P51, P52, P53 = 35184372088832, 2251799813685248, 4503599627370496, 9007199254740992
-- The layout of what the keys hold stands before each scope, in its key. Any other
-- change of the layout than new keys needs a new number, or two versions of this
-- script would read each other's numbers wrong. Without a number it is 0. A state in
-- layout 1 is read on: it has no more than MORE's first four. What is open in it is
-- charged twice where end books begin, at once and at its end: nothing says what it is.
local LAYOUT = 2
local MINUTE = 60000000
local DAY = 86400000000
local KEEP = 3600000 -- ms that a scope, or a process that is gone, is remembered
local LINE = 3024000000 -- ms, 35 days; a net only: lines and lanes vanish when they empty

-- A limit, or the gate of a scope (places in flight and pause), which has no N.
-- RB and RL are burst and largest as they were set, 0 for the default; CONF is what
-- was configured, or false.
-- What most calls do not read is packed in COLD, and so is the gate; rest() unpacks.
local NAME, UNIT, N, W, BURST, LARGEST, U, R, AT, BORN, Q, COLD, MORE, RB, RL, HELD, TU, TR, V, OWED, LOW, OWNER, CONF =
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23
-- A scope.
local SNAME, PAUSED, BY, WHY, MAXOPEN, OPEN, MAXQ, WEIGHT, WAITN, WAIT, DEBIT, REFUND, GATE, LIMITS, TAUGHT, PROBEAFTER, PROBEAT, PROBER, SPENDS =
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19
-- The root scope also has these.
local REV, GEN, SEQ, EPOCH, LAST, SWEEP, LEARN, CONFIG, OFFSET, MEMBERS, BLIND =
  20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30

local HOUR = '3600000' -- KEEP, as text
local floor, max, min = math.floor, math.max, math.min
local call, pack, unpack_ = redis.call, cmsgpack.pack, cmsgpack.unpack
local pre = KEYS[1]
local A, pos = unpack_(ARGV[1]), 0
local function nx() pos = pos + 1; return A[pos] end

local t = call('TIME')
local now = t[1] * 1000000 + t[2]

local pid, number, seen, knownEpoch, hello, had, ttl, learnFor, waiting, steps, config, levels, knownGen, bye =
  A[1], A[2], A[3], A[4], A[5], A[6], A[7], A[8], A[9], A[10], A[11], A[12], A[13], A[14]
local pkey = pre .. 'p:' .. pid

-- The scopes of this call, the root first, and how they begin: 0 with nothing,
-- 1 here it is, 2 there is a definition that was not sent.
local ns = A[15]
local names, keys, defs, must = {}, {pkey}, {}, {}
pos = 15
for k = 1, ns do
  local name, def = A[pos + 1], A[pos + 2]
  pos = pos + 2
  names[k] = name
  keys[k + 1] = pre .. 's:' .. name
  if def == 1 then
    defs[k] = pos
    pos = pos + 9 + 10 * A[pos + 9]
  end
  must[k] = def == 2
end
local raw = call('MGET', unpack(keys))

-- What a key of a scope holds, or its layout if that is another.
local function scopeOf(text)
  local layout, s = unpack_(text)
  if layout == LAYOUT then return s end
  if layout ~= 1 then return nil, type(layout) == 'number' and layout or 0 end
  s[REFUND][4] = 0
  for _, l in ipairs(s[LIMITS]) do
    local m = l[MORE]
    if m then m[JOINT], m[LEAVES], m[BOOKS], m[FOUND], m[UNDERWAY], m[YOUNG], m[FROMTHEN], m[YOUNGIN] = 0, 0, false, false, 0, 0, 0, 0 end
  end
  return s
end

local found = {}
for k = 1, ns do
  if raw[k + 1] then
    local s, layout = scopeOf(raw[k + 1])
    if not s then return pack({'layout', layout, LAYOUT}) end
    found[k] = s
  end
end

-- A call that was decided already gets the same answer again, and does nothing.
local p = raw[1]
if p then
  p = unpack_(p)
  if number == p[1] then return p[2] end
  if number < p[1] then return pack({'stale'}) end
  if p[4] == 1 then return pack({'dead'}) end
elseif hello == 0 then
  return pack({'unknown'})
else
  p = {0, '', 0, 0, 0}
end

---------------------------------------------------------------- arithmetic

-- floor(a*b/m) and the remainder, for whole a, b < 2^53 and m <= 2^52. Seven bits
-- of a at a time: r*128 + limb*b < 255*m < 2^53, for m < 2^45. Above that, one bit at
-- a time: r*2 < 2^53, and once it is below m, r + b < 2^53. A quotient above 2^53 is
-- inexact; its callers stop at 2^52 or at a burst.
local function muldiv(a, b, m)
  local x = a * b
  if x < P53 then
    local r = x % m
    return (x - r) / m, r
  end
  local bq = floor(b / m)
  b = b - bq * m
  local q, r, d = 0, 0, 562949953421312 -- 2^49
  if m >= P45 then
    d = P52
    for _ = 1, 53 do
      q, r = q * 2, r * 2
      if r >= m then q, r = q + 1, r - m end
      if floor(a / d) % 2 == 1 then
        r = r + b
        if r >= m then q, r = q + 1, r - m end
      end
      d = d / 2
    end
    return q + a * bq, r
  end
  for _ = 1, 8 do
    local y = r * 128 + floor(a / d) % 128 * b
    r = y % m
    q = q * 128 + (y - r) / m
    d = d / 128
  end
  return q + a * bq, r
end

-- u, r plus n*span grains.
local function earn(u, r, n, span, w)
  local q, s = muldiv(n, span, w)
  r = r + s
  if r >= w then return u + q + 1, r - w end
  return u + q, r
end

local function put(l, u, r) -- within the floor and the burst
  if u < -P52 then u, r = -P52, 0 end
  if u >= l[BURST] then u, r = l[BURST], 0 end
  l[U], l[R] = u, r
end

local function advance(l)
  local span = now - l[AT]
  if span <= 0 then return end
  l[AT] = now
  if l[U] < l[BURST] then put(l, earn(l[U], l[R], l[N], span, l[W])) end
end

-- Microseconds from the instant `from` until u and r are k units; from >= now.
local function paced(u, r, burst, l, k, from)
  if from > now then
    u, r = earn(u, r, l[N], from - now, l[W])
    if u >= burst then u, r = burst, 0 end
  end
  if u >= k then return 0 end
  local q, s = muldiv(k - u, l[W], l[N])
  local d = q - floor((r - s) / l[N])
  if d > P52 then return P52 end
  return d
end

local function amount(c, unit)
  if unit == 3 then return c[2] + c[3] end
  return c[unit + 1]
end

-- Sums over all time, modulo 2^52; c is at most 2^52 either way.
local function fold(sum, c, sign)
  for k = 1, 3 do sum[k] = (sum[k] + sign * c[k]) % P52 end
end

---------------------------------------------------------------- guards and windows

-- What limit.Guard and limit.Window are, number for number: whole units, and the
-- store's microseconds. A limit has them in MORE, or false there. What package limit does
-- beyond that with a first crowd's balances is left out: limit.Reservation.Unsure with
-- meterMore.doubts, that only sure units raise what is shown, and meter.sawOver, which
-- holds a window behind a guard to the newest reading. Each is a guard's caution about a
-- guess; without them a guess may be refused sooner, and no ledger is wrong.
-- A guard: the level of its pace, then its fields.
local GU, GR, GAT, GBURST, GBASE, GOPEN, GKNOWN, GSHOWN, GSURE, GNEWEST, GHEARD, GFULL, GSPENT, GSINCE, GDEAF, GWRONG, GBAD, GUNTIL =
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18
-- A window: its law; the panes; the log, of which the newest slot, the sum that
-- counts and the oldest slot that counts are here. The other slots lie in a string
-- of 1024 pairs, the latest instant and the units, so that a call touches few.
local SHAPE, WN, FIRST, QUIET, SPAN, GRID, WAT, EDGE, CUR, PAST, PRIOR, WOPEN, NAMED, HEAD, HEADAT, HEADU, SUM, TAIL, TAILAT, TAILU, RING, SPARE =
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22
-- MORE: a guard, a window, how readings are read, and the law and the guard as they
-- were set, packed; the instant until which the bucket is asked beside the window; the
-- one from which a window that is the law no more is not asked, 0 for none; the further
-- books of a limit whose calls are charged when they end, or may be, or false; the reading
-- that lowered the bucket last, or false; the units of open reservations, since there was
-- a window, and those of them that were taken since an instant, with that instant and
-- their input.
local GUARD, WINDOW, READ, TEXT, JOINT, LEAVES, BOOKS, FOUND, UNDERWAY, YOUNG, FROMTHEN, YOUNGIN = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
-- A reading: how far it is below the own books, in units and grains, the instant of which
-- it speaks, and the reservation that brought it.
local OVERU, OVERR, SAIDAT, SAIDBY = 1, 2, 3, 4
-- The further books, as in limit/ended.go: all from the end, input from the start and
-- output from the end (or false), and 1 if they are asked. Beside a window that is a guess
-- they are kept and not asked.
local WHOLE, HALVES, ASKED = 1, 2, 3
-- The place in what was set that says whether there are such books.
local ATEND = 12
local MARGIN, READAT, RSET, RLATE, ARIGHT, AAT, AUSED, SRIGHT, SAT, SUSED = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
local FIXED, LOG, SLIDING = 2, 3, 5
local SLOTS, KEPT = 511, 1024
local BACKOFF = 600000000
local MOST = 1000000000000

local X -- what more made
local function more()
  if X then return X end
  X = {}

  ------------------------------------------------ guards

  local function gput(g, u, r)
    if u < -P52 then u, r = -P52, 0 end
    if u >= g[GBURST] then u, r = g[GBURST], 0 end
    g[GU], g[GR] = u, r
  end

  local function gadvance(l, g)
    local span = now - g[GAT]
    if span <= 0 then return end
    g[GAT] = now
    if g[GU] < g[GBURST] then gput(g, earn(g[GU], g[GR], l[N], span, l[W])) end
  end

  local function newGuard(l, burst)
    burst = min(burst, l[N])
    return {burst, 0, now, burst, burst, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
  end

  local function covers(g, c) return g[GOPEN] == 1 or g[GKNOWN] == 1 and c <= g[GSHOWN] end

  local function passes(l, g, c)
    gadvance(l, g)
    return c == 0 or covers(g, c) or g[GU] >= min(c, g[GBURST])
  end

  local function gspend(l, g, c)
    if g[GU] >= g[GBURST] then g[GFULL] = 1 end
    local u, r = g[GU] - c, g[GR]
    if u < 0 and covers(g, c) then
      if g[GU] < 0 then u = g[GU] else u, r = 0, 0 end
    end
    gput(g, u, r)
    if g[GKNOWN] == 1 then
      g[GSHOWN], g[GSURE] = max(-P52, g[GSHOWN] - c), max(-P52, g[GSURE] - c)
    end
    if g[GFULL] == 1 and 2 * g[GU] + floor(2 * g[GR] / l[W]) < g[GBURST] then
      g[GFULL], g[GSPENT], g[GSINCE] = 0, 1, now
    end
  end

  local function grefund(g, d)
    gput(g, g[GU] + d, g[GR])
    if g[GKNOWN] == 1 then
      g[GSHOWN], g[GSURE] = min(g[GSHOWN] + d, MOST), min(g[GSURE] + d, MOST)
    end
  end

  local function resize(g, burst)
    g[GBURST] = burst
    gput(g, g[GU], g[GR])
  end

  local function gwait(l, g, start, ahead, c)
    gadvance(l, g)
    if g[GOPEN] == 1 or c == 0 and ahead == 0 or g[GKNOWN] == 1 and ahead + c <= g[GSHOWN] then return 0 end
    if g[GKNOWN] == 1 and ahead > 0 and g[GSHOWN] > 0 then
      ahead = max(0, ahead - g[GSHOWN])
      if ahead == 0 then return 0 end
    end
    return paced(g[GU], g[GR], g[GBURST], l, min(c, g[GBURST]) + ahead, start)
  end

  -- Behind a guard a sliding window is a guess, until an answer says what is left.
  local function unheard(g, w) return g[GHEARD] == 0 and w[SHAPE] == SLIDING end

  local function trusts(g, w, c) return unheard(g, w) or g[GKNOWN] == 1 and c <= g[GSURE] end

  local function shown(g, sent, units, sure)
    if sent < g[GNEWEST] or sent < g[GDEAF] then return end
    g[GKNOWN], g[GHEARD], g[GNEWEST] = 1, 1, sent
    g[GSHOWN], g[GSURE] = max(-MOST, min(units, MOST)), max(-MOST, min(sure, MOST))
  end

  X.passed = function(l, sent)
    local g = l[MORE] and l[MORE][GUARD]
    if not g or g[GOPEN] == 1 or g[GSPENT] == 0 or sent < g[GSINCE] then return end
    g[GSPENT] = 0
    local burst = min(2 * g[GBURST], l[N])
    if g[GBAD] > 0 and now < g[GUNTIL] and burst >= g[GBAD] then return end
    gadvance(l, g)
    resize(g, burst)
  end

  local function grefused(l, g)
    gadvance(l, g)
    if g[GKNOWN] == 1 and g[GSURE] >= 0 then
      g[GWRONG] = g[GWRONG] + 1
      if g[GWRONG] >= 2 then g[GWRONG], g[GDEAF] = 0, now + BACKOFF end
      g[GNEWEST] = now
    end
    if g[GBURST] > g[GBASE] then g[GBAD], g[GUNTIL] = g[GBURST], now + BACKOFF end
    g[GOPEN], g[GKNOWN], g[GFULL], g[GSPENT], g[GSHOWN], g[GSURE] = 0, 0, 0, 0, 0, 0
    resize(g, g[GBASE])
  end

  -- The rate of l is changed already; w is its window before.
  local function gset(l, g, burst, w)
    local grown = g[GBURST] > g[GBASE]
    g[GBASE] = min(burst, l[N])
    local nextBurst = g[GBASE]
    if grown then nextBurst = max(g[GBASE], min(g[GBURST], l[N])) end
    if w ~= l[W] then g[GR] = muldiv(g[GR], l[W], w) end
    resize(g, nextBurst)
  end

  ------------------------------------------------ the log of a window

  local function ring(w) return pre .. 'g:' .. w[RING] end

  -- Shows the kept slots from `from` to `to` in order, until f returns true.
  local function scan(w, from, to, f)
    from = max(from, w[HEAD] - KEPT + 1)
    while from < w[HEAD] and from <= to do
      local p = from % KEPT
      local n = min(32, KEPT - p, w[HEAD] - from, to - from + 1)
      local text = call('GETRANGE', ring(w), p * 16, (p + n) * 16 - 1)
      for k = 0, n - 1 do
        if #text < k * 16 + 16 then break end
        local at, units = struct.unpack('>dd', text, k * 16 + 1)
        if units > 0 and floor(at / w[GRID]) == from + k and f(from + k, at, units) then return end
      end
      from = from + n
    end
    if to >= w[HEAD] and w[HEADU] > 0 then f(w[HEAD], w[HEADAT], w[HEADU]) end
  end

  local function slot(w, k)
    local at, units = 0, 0
    scan(w, k, k, function(_, a, u) at, units = a, u; return true end)
    return at, units
  end

  local function write(w, k, at, units)
    if k == w[HEAD] then
      w[HEADAT], w[HEADU] = at, units
      return
    end
    call('SETRANGE', ring(w), k % KEPT * 16, struct.pack('>dd', at, units))
    call('PEXPIRE', ring(w), KEEP + floor(w[SPAN] / 500))
  end

  -- What does not count any more at `at` leaves the sum.
  local function forget(w, at)
    local from = at - w[SPAN]
    if w[HEADU] > 0 and w[HEADAT] <= from then
      w[SUM], w[TAIL] = 0, w[HEAD]
      return
    end
    if w[TAIL] == w[HEAD] or w[TAILAT] > from then return end
    local k, a, u = w[HEAD], 0, 0
    scan(w, w[TAIL], w[HEAD] - 1, function(k2, a2, u2)
      if a2 > from then
        k, a, u = k2, a2, u2
        return true
      end
      w[SUM] = w[SUM] - u2
    end)
    w[TAIL], w[TAILAT], w[TAILU] = k, a, u
  end

  local function enter(w, at, units)
    local k = floor(at / w[GRID])
    if k <= w[HEAD] - KEPT then return end
    if k > w[HEAD] then
      if w[HEADU] > 0 then
        local a, u, old = w[HEADAT], w[HEADU], w[HEAD]
        if w[TAIL] == old then w[TAILAT], w[TAILU] = a, u end
        w[HEAD] = k
        write(w, old, a, u)
      elseif w[TAIL] == w[HEAD] then
        w[TAIL] = k
      end
      if w[SUM] == 0 then w[TAIL] = k end
      w[HEAD], w[HEADAT], w[HEADU] = k, 0, 0
    end
    local a, u = w[HEADAT], w[HEADU]
    if k < w[HEAD] then a, u = slot(w, k) end
    units = min(units, P52 - w[SUM])
    local counted = k >= w[TAIL]
    a, u = max(a, at), u + units
    write(w, k, a, u)
    if counted then
      w[SUM] = w[SUM] + units
    elseif a > w[WAT] - w[SPAN] then
      w[SUM], w[TAIL] = w[SUM] + u, k
    end
    if k == w[TAIL] then w[TAILAT], w[TAILU] = a, u end
  end

  local function remove(w, at, units)
    local k = floor(at / w[GRID])
    if k > w[HEAD] or k <= w[HEAD] - KEPT then return end
    local a, u = slot(w, k)
    units = min(units, u)
    if units <= 0 then return end
    write(w, k, a, u - units)
    if k >= w[TAIL] and a > w[WAT] - w[SPAN] then w[SUM] = w[SUM] - units end
    if k == w[TAIL] then w[TAILU] = u - units end
  end

  local function logged(w, at) -- what counts at an instant not before now
    local sum, from = w[SUM], at - w[SPAN]
    if at > w[WAT] and sum > 0 then -- else the newest slot counts no more
      scan(w, w[TAIL], w[HEAD], function(_, a, u)
        if a > from then return true end
        sum = sum - u
      end)
    end
    return sum
  end

  local function since(w, from) -- what was entered after `from`, which is not after now - span
    local sum = w[SUM]
    scan(w, floor(from / w[GRID]), w[TAIL] - 1, function(_, a, u)
      if a > from and a <= w[WAT] - w[SPAN] then sum = sum + u end
    end)
    return sum
  end

  local function lwait(w, start, ahead, c)
    local used = logged(w, start)
    local x = ahead + c - (w[WN] - used)
    if x <= 0 then return 0 end
    local turns, all = 0, max(used, w[WN])
    if x > all then
      turns = floor((x - all + w[WN] - 1) / w[WN])
      x = x - turns * w[WN]
    end
    local d = w[SPAN]
    if x <= used then
      scan(w, w[TAIL], w[HEAD], function(_, a, u)
        if a <= start - w[SPAN] then return end
        x = x - u
        if x <= 0 then
          d = a + w[SPAN] - start
          return true
        end
      end)
    end
    return min(P52, d + turns * w[SPAN])
  end

  ------------------------------------------------ the panes of a window

  local function rolled(l, w, at)
    local edge, cur, past, prior, open = w[EDGE], w[CUR], w[PAST], w[PRIOR], w[WOPEN]
    local win = l[W]
    if open == 0 or at - edge < win then return edge, cur, past, prior, open end
    local k = floor((at - edge) / win)
    if k == 1 then
      cur, past, prior = 0, cur, past
    elseif k == 2 then
      cur, past, prior = 0, 0, cur
    else
      cur, past, prior = 0, 0, 0
    end
    edge = edge + k * win
    if w[FIRST] == 1 and w[NAMED] == 0 and cur == 0 and (past == 0 or w[SHAPE] == FIXED) then open = 0 end
    return edge, cur, past, prior, open
  end

  local function roll(l, w, at)
    if at <= w[WAT] then return end
    w[WAT] = at
    if w[SHAPE] ~= LOG then w[EDGE], w[CUR], w[PAST], w[PRIOR], w[WOPEN] = rolled(l, w, at) end
    forget(w, at)
  end

  local function weighted(l, w, at, edge, cur, past, open) -- whole units, and whether there is a part
    if open == 0 then return 0, 0 end
    if w[SHAPE] == FIXED then return cur, 0 end
    local q, r = muldiv(past, max(0, l[W] - (at - edge)), l[W])
    return cur + q, r
  end

  local function paned(l, w, at)
    local edge, cur, past, _, open = rolled(l, w, at)
    return weighted(l, w, at, edge, cur, past, open)
  end

  local function islog(w) return w[SHAPE] == LOG or w[SHAPE] == SLIDING end

  -- What is used at an instant not before now, rounded up and down.
  local function used(l, w, at)
    local up, down = 0, 0
    if w[SHAPE] ~= LOG then
      local q, r = paned(l, w, at)
      up, down = r > 0 and q + 1 or q, q
    end
    if islog(w) then
      local n = logged(w, at)
      up, down = max(up, n), max(down, n)
    end
    return up, down
  end

  local function which(l, w, at) -- the field of the pane that at lies in
    if at >= w[EDGE] then return CUR end
    if w[SHAPE] == FIXED then return end
    if at >= w[EDGE] - l[W] then return PAST end
    if at >= w[EDGE] - 2 * l[W] then return PRIOR end
  end

  local function pcharge(l, w, at, units)
    if w[WOPEN] == 0 then
      w[EDGE], w[CUR], w[PAST], w[PRIOR], w[WOPEN] = w[WAT], 0, 0, 0, 1
      at = w[WAT]
    end
    w[NAMED] = 0
    local f = which(l, w, at)
    if f then w[f] = min(w[f] + units, P52) end
  end

  local function wcharge(l, w, at, units)
    if units <= 0 then return end
    if w[SHAPE] ~= LOG then pcharge(l, w, at, units) end
    enter(w, at, units)
  end

  local function wrefund(l, w, taken, units)
    if units <= 0 then return end
    if w[SHAPE] ~= LOG then
      local f = which(l, w, taken)
      if f then w[f] = w[f] - min(w[f], units) end
      if w[FIRST] == 1 and w[NAMED] == 0 and w[CUR] == 0 and (w[PAST] == 0 or w[SHAPE] == FIXED) then w[WOPEN] = 0 end
    end
    remove(w, taken, units)
  end

  local function wadmits(l, w, c)
    if c == 0 then return true end
    if w[SHAPE] == FIXED and w[QUIET] > 0 and w[WOPEN] == 1 and w[WAT] >= w[EDGE] + l[W] - w[QUIET] then return false end
    return w[WN] - used(l, w, w[WAT]) >= min(c, w[WN])
  end

  local function age(l, need, past, cur, n)
    if past == 0 then return 0 end
    local q = muldiv(n - cur - need, l[W], past)
    return l[W] - min(l[W], q)
  end

  local function pwait(l, w, start, ahead, c)
    local edge, cur, past, _, open = rolled(l, w, start)
    if open == 0 then edge, cur, past = start, 0, 0 end
    local win, n, need = l[W], w[WN], ahead + c
    local room = max(0, n - cur)
    if w[SHAPE] == FIXED then
      if start >= edge + win - w[QUIET] then room = 0 end
      if need <= room then return 0 end
      return min(P52, edge + win - start + floor((need - room - 1) / n) * win)
    end
    if need > room then
      local last, left = cur, need
      if ahead > 0 then last, left = max(cur, n), need - room end
      local k = floor((left - 1) / n)
      if k > 0 then last = n end
      return min(P52, edge + win - start + age(l, left - k * n, last, 0, n) + k * win)
    end
    return max(0, edge + age(l, need, past, cur, n) - start)
  end

  local function wwait(l, w, start, ahead, c)
    if c == 0 and ahead == 0 then return 0 end
    c = min(c, w[WN])
    local d = 0
    if w[SHAPE] ~= LOG then d = pwait(l, w, start, ahead, c) end
    if islog(w) then d = max(d, lwait(w, start, ahead, c)) end
    return d
  end

  local function others(l, w, at, units)
    if units < 1 then return false end
    local before = used(l, w, w[WAT])
    wcharge(l, w, at, min(units, 4 * MOST))
    return used(l, w, w[WAT]) > before
  end

  local function wlower(l, w, at, units)
    local _, down = used(l, w, w[WAT])
    return others(l, w, at, w[WN] - units - down)
  end

  -- What others used by then for sure, nil where that is forgotten.
  local function unknown(l, w, sent, remaining, charged, returned)
    sent = min(sent, w[WAT])
    local left = w[WN] - remaining + charged - returned
    local missing
    if w[SHAPE] ~= LOG then
      if w[WOPEN] == 0 then
        if w[FIRST] == 1 and sent == w[WAT] then missing = left end
      elseif sent >= w[EDGE] then
        missing = left - weighted(l, w, sent, w[EDGE], w[CUR], w[PAST], 1)
      elseif w[SHAPE] ~= FIXED and sent >= w[EDGE] - l[W] then
        local q = muldiv(w[PRIOR], w[EDGE] - sent, l[W])
        missing = left - w[CUR] - w[PAST] - q
      end
    end
    if islog(w) and sent > w[WAT] - w[SPAN] then
      local m = left - since(w, sent - w[SPAN])
      if not missing or m < missing then missing = m end
    end
    return missing
  end

  local function wlowerSent(l, w, sent, remaining, charged, returned)
    local missing = unknown(l, w, sent, remaining, charged, returned)
    return missing ~= nil and others(l, w, min(sent, w[WAT]), missing)
  end

  local function wdrain(l, w, keep, d)
    local at, fell = w[WAT] + d, false
    if w[SHAPE] ~= LOG then
      local q, r = paned(l, w, at)
      local over = w[WN] - keep - q
      local edge = w[WOPEN] == 1 and w[EDGE] or w[WAT]
      local weight = 0
      if at - edge < l[W] then
        weight = l[W]
      elseif w[SHAPE] ~= FIXED and at - edge < 2 * l[W] then
        weight = 2 * l[W] - (at - edge)
      end
      if weight > 0 and over >= 1 then
        local units, rest = muldiv(over, l[W], weight)
        units = units - floor((r - rest) / weight)
        pcharge(l, w, w[WAT], min(units, MOST))
        fell = true
      end
    end
    if islog(w) and d < w[SPAN] then
      local x = w[WN] - keep - logged(w, at)
      if x > 0 then
        enter(w, w[WAT], x)
        fell = true
      end
    end
    return fell
  end

  -- law: shape, edge, first call, margin, quiet, spare; at 4 to 9 of what was set.
  local function begin(l, name, law, at)
    local span = l[W] + law[7]
    local grid = floor((span + SLOTS - 1) / SLOTS)
    local head = floor(at / grid)
    local open = (law[6] == 0 or law[5] ~= 0) and 1 or 0
    local edge = 0
    if open == 1 then edge = at - (at - law[5]) % l[W] end
    local w = {law[4], max(1, l[N] - law[9]), law[6], law[8], span, grid, at, edge, 0, 0, 0, open, law[6],
      head, 0, 0, 0, head, 0, 0, name, law[9]}
    call('DEL', ring(w))
    return w
  end

  -- What is left at an instant not before now, in units and grains.
  local function level(l, w, at)
    local u, r = w[WN], 0
    if w[SHAPE] ~= LOG then
      local q, rest = paned(l, w, at)
      u = u - q
      if rest > 0 then u, r = u - 1, l[W] - rest end
    end
    if islog(w) then
      local n = w[WN] - logged(w, at)
      if n <= u then u, r = n, 0 end
    end
    return u, r
  end

  local function credit(l, w) return (level(l, w, w[WAT])) end

  local function below(u, r, u2, r2) return u < u2 or u == u2 and r < r2 end

  ------------------------------------------------ readings of the bucket

  -- The own books hold no more than the burst: Bucket.trim. It comes before anything that
  -- makes the level fall.
  local function trim(l)
    local f = l[MORE] and l[MORE][FOUND]
    if not f then return end
    local u, r = l[BURST] - l[U], 0
    if l[R] > 0 then u, r = u - 1, l[W] - l[R] end
    if below(u, r, f[OVERU], f[OVERR]) then f[OVERU], f[OVERR] = u, r end
    if f[OVERU] == 0 and f[OVERR] == 0 then l[MORE][FOUND] = false end
  end
  X.trim = trim

  -- A reading of the instant at has lowered the level, which was u and r: bound.heard.
  X.heard = function(l, u, r, at, by)
    local m = l[MORE]
    local f = m[FOUND] or {0, 0}
    u, r = u - l[U] + f[OVERU], r - l[R] + f[OVERR]
    if r < 0 then u, r = u - 1, r + l[W] elseif r >= l[W] then u, r = u + 1, r - l[W] end
    m[FOUND] = {min(u, P52), r, at, by}
  end

  -- A settlement charges what the last reading may have in it: bound.knew, Bucket.found.
  X.knew = function(l, back, e)
    local f = l[MORE][FOUND]
    local own, n = e[4] == f[SAIDBY] and e[2] <= f[SAIDAT], 0
    if own and e[3] == 1 then
      n = max(0, -amount(back, l[UNIT]))
    elseif l[UNIT] % 2 == 1 and (own or e[1] <= f[SAIDAT] - 250000) then
      n = max(0, -back[2])
    end
    trim(l)
    if n == 0 or not l[MORE][FOUND] then return end
    local u, r = n, 0
    if below(f[OVERU], f[OVERR], u, r) then u, r = f[OVERU], f[OVERR] end
    f[OVERU], f[OVERR] = f[OVERU] - u, f[OVERR] - r
    if f[OVERR] < 0 then f[OVERU], f[OVERR] = f[OVERU] - 1, f[OVERR] + l[W] end
    l[U], l[R] = l[U] + u, l[R] + r
    if l[R] >= l[W] then l[U], l[R] = l[U] + 1, l[R] - l[W] end
  end

  ------------------------------------------------ both, and the bucket

  -- The window that is asked, and the further books if they are, or if all are meant.
  local function windows(m, whole)
    local all, b = {m[WINDOW] or nil}, m[BOOKS]
    if b and (whole or b[ASKED] == 1) then
      all[#all + 1] = b[WHOLE]
      all[#all + 1] = b[HALVES] or nil
    end
    return all
  end

  local function lose(m, which)
    if which == WINDOW then
      if m[WINDOW] then call('DEL', ring(m[WINDOW])) end
      m[UNDERWAY], m[YOUNG], m[FROMTHEN], m[YOUNGIN] = 0, 0, 0, 0
    elseif m[BOOKS] then
      call('DEL', ring(m[BOOKS][WHOLE]))
      if m[BOOKS][HALVES] then call('DEL', ring(m[BOOKS][HALVES])) end
    end
    m[which] = false
  end

  local function ready(l)
    local m = l[MORE]
    if m[LEAVES] > 0 and now >= m[LEAVES] then
      lose(m, WINDOW)
      m[LEAVES] = 0
    end
    local w, b = m[WINDOW], m[BOOKS]
    if w then roll(l, w, now) end
    if b then
      roll(l, b[WHOLE], now)
      if b[HALVES] then roll(l, b[HALVES], now) end
    end
    return m[GUARD], w, m
  end

  -- The credit, in units and grains: meter.there.
  local function there(l)
    local u, r = l[U], l[R]
    if not l[MORE] then return u, r end
    local g, w, m = ready(l)
    if not w or g and unheard(g, w) then return u, r end
    local least, rest = level(l, w, now)
    for _, x in ipairs(windows(m)) do
      local u2, r2 = level(l, x, now)
      if below(u2, r2, least, rest) then least, rest = u2, r2 end
    end
    if (g or now < m[JOINT]) and below(u, r, least, rest) then return u, r end
    return least, rest
  end

  local function sixth(l) return floor((l[W] + 5) / 6) end

  -- The law of the window is no more: meter.leave.
  local function leave(l, m)
    local w = m[WINDOW]
    if not w or m[LEAVES] > 0 then return end
    lose(m, BOOKS)
    roll(l, w, now)
    local u, r = level(l, w, now)
    if not below(u, r, l[U], l[R]) then
      lose(m, WINDOW)
      return
    end
    -- Three times a wait that package limit rounds up to its nanoseconds.
    local k = l[W] * 1000 < P53 and 1000 or 1
    local q, s = muldiv(l[U] - u, k * l[W], l[N])
    local d = q - floor((k * (r - l[R]) - s) / l[N])
    m[LEAVES] = now + min(sixth(l), max(1, floor((3 * d + k - 1) / k)))
    m[JOINT] = m[LEAVES]
  end

  -- w under another law, with the use that it has kept: Window.become.
  local function become(l, w, law)
    roll(l, w, now)
    local was, shape, from, all = credit(l, w), w[SHAPE], max(0, now - 2 * l[W]), {}
    scan(w, floor(from / w[GRID]), w[HEAD], function(_, a, u)
      if a >= from then all[#all + 1] = {a, u} end
    end)
    w = begin(l, w[RING], law, from)
    for _, x in ipairs(all) do
      roll(l, w, x[1])
      wcharge(l, w, x[1], x[2])
    end
    roll(l, w, now)
    if shape == w[SHAPE] then wcharge(l, w, now, credit(l, w) - was) end
    return w
  end

  -- Whether all that was charged from that instant on counts in full: Window.counts.
  local function counts(l, w, from)
    if w[SHAPE] == LOG then return from > w[WAT] - l[W] end
    return w[WOPEN] == 1 and from >= w[EDGE]
  end

  -- Reservations end that were taken then: meterMore.closes. They may be older than the
  -- window.
  local function closes(m, taken, held, input)
    m[UNDERWAY] = max(0, m[UNDERWAY] - held)
    if taken >= m[FROMTHEN] then m[YOUNG], m[YOUNGIN] = max(0, m[YOUNG] - held), max(0, m[YOUNGIN] - input) end
  end

  -- meter.follow
  local function follow(s, l, m, law)
    if law[4] < FIXED then
      leave(l, m)
      return
    end
    local had, name, first = there(l), s[SNAME] .. '\0' .. l[NAME], law
    local w, b, open = m[WINDOW], m[BOOKS], 0
    m[LEAVES] = 0
    if law[ATEND] == 1 then
      first = {unpack(law)}
      first[9] = 0
    end
    if w then
      if counts(l, w, m[FROMTHEN]) then had, open = had + m[YOUNG], m[YOUNGIN] end
      m[WINDOW] = become(l, w, first)
    else
      m[WINDOW] = begin(l, name, first, now)
      wcharge(l, m[WINDOW], now, l[N] - min(l[U], l[N]))
    end
    if law[ATEND] ~= 1 and law[4] ~= SLIDING then
      lose(m, BOOKS)
    elseif b then
      b[WHOLE] = become(l, b[WHOLE], law)
      if b[HALVES] then b[HALVES] = become(l, b[HALVES], law) end
    else
      -- What open calls hold is charged when they end; in halves their input is used now.
      local function book(at)
        local x = begin(l, name .. at, law, now)
        wcharge(l, x, now, x[WN] - max(0, had))
        return x
      end
      m[BOOKS] = {book('\0w'), l[UNIT] == 3 and book('\0h')}
      if m[BOOKS][HALVES] then wcharge(l, m[BOOKS][HALVES], now, open) end
    end
    if m[BOOKS] then m[BOOKS][ASKED] = law[ATEND] end
  end

  -- Whether the window and the further books have room.
  local function fits(l, m, c)
    for _, x in ipairs(windows(m)) do
      if not wadmits(l, x, c) then return false end
    end
    return true
  end

  local function wlongest(l, m, start, ahead, c)
    local d = 0
    for _, x in ipairs(windows(m)) do d = max(d, wwait(l, x, start, ahead, c)) end
    return d
  end

  X.admits = function(l, c)
    local g, w, m = ready(l)
    if g and not passes(l, g, c) or c > l[LARGEST] then return false end
    local room = l[U] >= min(c, l[BURST])
    if not w then return room end
    if g then return room and (trusts(g, w, c) or fits(l, m, c)) end
    return (room or now >= m[JOINT]) and fits(l, m, c)
  end

  X.spend = function(l, c)
    local g, w = ready(l)
    trim(l)
    put(l, l[U] - c, l[R])
    if g then
      gadvance(l, g)
      gspend(l, g, c)
    end
    if w then wcharge(l, w, now, c) end
  end

  X.refund = function(l, taken, d)
    local g, w = ready(l)
    put(l, l[U] + d, l[R])
    if g then grefund(g, d) end
    if w then wrefund(l, w, taken, d) end
  end

  -- A call is admitted.
  X.take = function(l, c, input)
    X.spend(l, c)
    local m = l[MORE]
    local w = m[WINDOW]
    if w then
      m[UNDERWAY] = min(P52, m[UNDERWAY] + c)
      if not counts(l, w, m[FROMTHEN]) then m[YOUNG], m[FROMTHEN], m[YOUNGIN] = 0, now, 0 end
      m[YOUNG], m[YOUNGIN] = min(P52, m[YOUNG] + c), min(P52, m[YOUNGIN] + input)
    end
    if m[BOOKS] and m[BOOKS][HALVES] then wcharge(l, m[BOOKS][HALVES], now, input) end
  end

  -- Calls that were admitted then and held that end, and that comes back: endBooks.ended.
  X.ended = function(l, taken, held, back)
    local _, _, m = ready(l)
    local b, unit = m[BOOKS], l[UNIT]
    closes(m, taken, amount(held, unit), held[2])
    if not b then return end
    local charged = {max(0, held[1] - back[1]), max(0, held[2] - back[2]), max(0, held[3] - back[3])}
    wcharge(l, b[WHOLE], now, amount(charged, unit))
    if b[HALVES] then
      wrefund(l, b[HALVES], taken, back[2])
      wcharge(l, b[HALVES], now, max(0, -back[2]) + charged[3])
    end
  end

  -- Open reservations whose process is gone end as they are: their units, or their output.
  X.lapsed = function(l, n, output)
    local _, _, m = ready(l)
    local b = m[BOOKS]
    if output then
      if b and b[HALVES] then wcharge(l, b[HALVES], now, n) end
      return
    end
    closes(m, now, n, 0)
    if b then wcharge(l, b[WHOLE], now, n) end
  end

  X.wait = function(l, start, ahead, c)
    local g, w, m = ready(l)
    if w and m[LEAVES] > 0 and start >= m[LEAVES] then w = false end
    if w and not g and m[LEAVES] == 0 and start >= m[JOINT] then return wlongest(l, m, start, ahead, c) end
    local d = paced(l[U], l[R], l[BURST], l, min(c, l[BURST]) + ahead, start)
    if w and not g and m[LEAVES] == 0 then
      d = min(d, m[JOINT] - start)
      return min(P52, d + wlongest(l, m, start + d, ahead, c))
    end
    if w and not (g and trusts(g, w, ahead + c)) then
      local more = wlongest(l, m, start, ahead, c)
      if m[LEAVES] > 0 then more = min(more, m[LEAVES] - start) end
      d = max(d, more)
    end
    if g then d = max(d, gwait(l, g, start, ahead, c)) end
    return d
  end

  X.credit = function(l) return (there(l)) end

  X.capacity = function(l)
    local g, w, m = ready(l)
    if not g then return w and m[LEAVES] == 0 and l[N] or l[BURST] end
    local n = g[GBURST]
    if g[GOPEN] == 1 then n = l[N] elseif g[GKNOWN] == 1 then n = max(n, g[GSHOWN]) end
    return max(0, min(l[BURST], n))
  end

  X.held = function(l) -- of the credit, what the guard holds back
    local g = ready(l)
    if not g or g[GOPEN] == 1 then return 0 end
    gadvance(l, g)
    local n = g[GU]
    if g[GKNOWN] == 1 then n = max(n, g[GSHOWN]) end
    local c = X.credit(l)
    return max(0, c - max(0, n))
  end

  X.refused = function(l, keep, d)
    local g, w, m = ready(l)
    if g then
      grefused(l, g)
      return false
    end
    if not w then return false end
    if not (m[BOOKS] and m[BOOKS][ASKED] == 1) then return wdrain(l, w, keep, d) end
    local u, r = there(l)
    m[JOINT] = max(m[JOINT], now + d + sixth(l))
    local u2, r2 = there(l)
    return below(u2, r2, u, r)
  end

  -- A gap in the state: blind is how long nobody knows what was sent, or below zero.
  X.unlearn = function(l, at, blind)
    if at < now - 2 * l[W] then return end -- what was sent then does not count now
    local g, _, m = ready(l)
    if g then
      grefused(l, g)
      gput(g, min(g[GU], 0), 0)
    end
    for _, w in ipairs(windows(m, true)) do
      if blind < 0 then
        wlower(l, w, at, 0)
      else
        wcharge(l, w, at, min(l[N], (earn(0, 0, l[N], blind, l[W]))))
      end
    end
  end

  X.known = function(l, units)
    local _, _, m = ready(l)
    local fell = false
    for _, w in ipairs(windows(m)) do fell = wlower(l, w, now, units) or fell end
    return fell
  end

  -- Around a change of the rate.
  X.before = function(l)
    local g, _, m = ready(l)
    if g then gadvance(l, g) end
    trim(l)
    local was = {}
    for k, w in ipairs(windows(m, true)) do was[k] = credit(l, w) end
    return was
  end
  X.after = function(l, was, win)
    local m = l[MORE]
    local g = m[GUARD]
    if g then gset(l, g, g[GBASE], win) end
    local f = m[FOUND]
    if f and win ~= l[W] then f[OVERR] = muldiv(f[OVERR], l[W], win) end
    for k, w in ipairs(windows(m, true)) do
      if win == l[W] then
        local n = max(1, l[N] - w[SPARE])
        if n > w[WN] then wcharge(l, w, now, n - w[WN]) end
        w[WN] = n
      else
        local law = {0, 0, 0, w[SHAPE], w[WOPEN] == 1 and w[EDGE] or 0, w[FIRST], w[SPAN] - win, w[QUIET], w[SPARE]}
        if m[LEAVES] == 0 then law[5] = unpack_(m[TEXT])[5] end
        local x = begin(l, w[RING], law, now)
        for j = SHAPE, SPARE do w[j] = x[j] end
        wcharge(l, w, now, w[WN] - min(was[k], w[WN]))
      end
    end
  end

  -- No more is there than that, after the books that are asked have changed: meter.hold.
  local function hold(l, m, u, r)
    local u2, r2 = there(l)
    if not below(u, r, u2, r2) then return end
    if below(u, r, l[U], l[R]) then
      trim(l)
      put(l, u, r)
    end
    l[TU], l[TR] = 0, 0
    u2, r2 = there(l)
    local w = m[WINDOW]
    if not w or m[GUARD] or not below(u, r, u2, r2) then return end
    m[JOINT] = now + sixth(l)
    if w[SHAPE] == FIXED and w[WOPEN] == 1 then m[JOINT] = min(m[JOINT], w[EDGE] + l[W]) end
  end

  local none = {0, 0, 0, 0, 0, 0, 0, 0, 0}
  X.obey = function(s, l, text)
    local had, rest = there(l)
    local m = l[MORE] or {false, false, false, '', 0, 0, false, false, 0, 0, 0, 0}
    local old = m[TEXT] == '' and none or unpack_(m[TEXT])
    local new = text == '' and none or unpack_(text)
    l[MORE], m[TEXT] = m, text
    local other = old[ATEND] ~= new[ATEND]
    for k = 4, 9 do other = other or old[k] ~= new[k] end
    if other then follow(s, l, m, new) end
    local g = m[GUARD]
    if g then gadvance(l, g) end
    if new[1] == old[1] then
    elseif new[1] > 0 and old[1] > 0 then
      gset(l, g, new[1], l[W])
    elseif new[1] > 0 then
      m[GUARD] = newGuard(l, new[1])
    else
      -- A short burst instead of the guard: what went through that is not there.
      if l[BURST] < l[N] and not m[WINDOW] and (g[GU] < l[U] or g[GU] == l[U] and g[GR] < l[R]) then
        trim(l)
        put(l, g[GU], g[GR])
      end
      m[GUARD] = false
    end
    local r = m[READ]
    if new[2] > 0 or new[3] > 0 then
      r = r or {0, 0, 0, new[3] == 2 and 3 or 0, 0, 0, 0, 0, 0, 0}
      r[MARGIN], r[READAT] = new[2], new[3]
    else
      r = false
    end
    m[READ] = r
    if text == '' and not m[GUARD] and not m[WINDOW] and not r and not m[FOUND] then l[MORE] = false end
    hold(l, m, had, rest)
  end

  -- Of which instant readings speak: limit/lower.go has the rule.
  local function signed(x)
    x = x % P52
    if x > P52 / 2 then x = x - P52 end
    return x
  end
  local function apart(rem, at, sum, rem2, at2, sum2, l)
    local still = rem2 - signed(sum - sum2)
    local fill = earn(0, 0, l[N], math.abs(at - at2), l[W])
    if at < at2 then fill = -fill end
    return min(math.abs(rem - still), math.abs(rem - still - fill))
  end
  -- Whether a reading is one of now, and whether it is one of the sending.
  X.late = function(l, remaining, sent, sum, sumThen)
    local _, w, m = ready(l)
    local r = m[READ]
    if not r or r[READAT] == 0 then return false, true end
    if r[RSET] == 1 and remaining < l[N] - floor(l[N] / 50) then
      local a = apart(remaining, now, sum, r[ARIGHT], r[AAT], r[AUSED], l)
      local b = apart(remaining, sent, sumThen, r[SRIGHT], r[SAT], r[SUSED], l)
      local near = earn(0, 0, l[N], 500000, l[W])
      if a <= near and b > 2 * near and 4 * a < b then
        r[RLATE] = min(r[RLATE] + 1, 6)
      elseif b <= near and a > 2 * near and 4 * b < a then
        r[RLATE] = max(r[RLATE] - 1, -6)
      end
    end
    r[RSET], r[ARIGHT], r[AAT], r[AUSED] = 1, remaining, now, sum
    r[SRIGHT], r[SAT], r[SUSED] = remaining, sent, sumThen
    local late = r[RLATE] >= 3
    if w and not m[GUARD] then late = r[READAT] == 2 end
    return late, not late and (w and true or r[RLATE] < 0)
  end
  X.margin = function(l) return l[MORE][READ] and l[MORE][READ][MARGIN] or 0 end

  X.saw = function(l, sent, remaining, charged, returned, near)
    local g, w, m = ready(l)
    local left = remaining - X.margin(l) - charged + returned
    if g then shown(g, sent, left, left - near) end
    if not w or g then return false end
    if not (m[BOOKS] and m[BOOKS][ASKED] == 1) then return wlowerSent(l, w, sent, remaining, charged, returned) end
    -- Each call that is open may be in the reading or not: endBooks.lowerSent.
    local n = unknown(l, m[BOOKS][WHOLE], sent, remaining, 0, m[UNDERWAY])
    if not n or n < 1 then return false end
    for _, x in ipairs(windows(m)) do wcharge(l, x, min(sent, now), min(n, 4 * MOST)) end
    return true
  end

  X.spent = function(l) -- when a whole burst went that nobody has judged yet
    local g = l[MORE] and l[MORE][GUARD]
    return g and g[GSPENT] == 1 and g[GSINCE] or 0
  end

  X.drop = function(l)
    local m = l[MORE]
    if not m then return end
    lose(m, WINDOW)
    lose(m, BOOKS)
  end

  return X
end

-- Whether c must wait for l, and from `start` how long with `ahead` units before it.
local function short(l, c)
  if l[MORE] then return not more().admits(l, c) end
  return l[U] < min(c, l[BURST])
end

local function wait(l, start, ahead, c)
  if l[MORE] then return more().wait(l, start, ahead, c) end
  return paced(l[U], l[R], l[BURST], l, min(c, l[BURST]) + ahead, start)
end

---------------------------------------------------------------- scopes

local scopes, changed, order = {}, {}, {}
local dirty = {} -- scopes whose lines are to be looked at
local holds = {} -- process -> scope -> places, as changed by this call
local live, posts, notices = {[pid] = true}, {}, {}
local root, rest, settings
local M -- what rest made

local function touch(s)
  if not changed[s] then
    changed[s] = true
    order[#order + 1] = s
  end
end

---------------------------------------------------------------- allowances

-- What limit.Allowances are, number for number, by the store's calendar. A scope has
-- them in SPENDS, packed while nothing is spent: what may be spent (0 is any amount),
-- whether the periods roll, the epoch since which it counts, a day and a month, and what
-- members knew of a state that was lost.
-- Sums end at 2^52, and so does what may be spent.
local DAYTOKENS, DAYMONEY, MONTHTOKENS, MONTHMONEY, ROLLING, SINCE, DAYS, MONTHS, KNOWN =
  1, 2, 3, 4, 5, 6, 7, 8, 9
-- A period: its last part, from an instant until another, 0 for none, and what was spent
-- in it. The older parts of a rolling one lie in a key of their own, three numbers
-- each. Here are their sums, and the instant at which the first ends, 0 for none.
local FROM, UNTIL, TOKENS, MONEY, OLDTOKENS, OLDMONEY, ENDS =
  1, 2, 3, 4, 5, 6, 7

local paying = false -- a scope of this call has allowances
local P -- what pay made
local function pay()
  if P then return P end
  P = {}
  local olds, stale = {}, {} -- scope -> older parts of its day and its month; those that changed

  local function warmed(s)
    if type(s[SPENDS]) == 'string' then
      if s[SPENDS] == '' then return end
      s[SPENDS] = unpack_(s[SPENDS])
    end
    return s[SPENDS]
  end

  local function akey(s) return pre .. 'a:' .. s[SNAME] end

  local function older(s, which)
    local o = olds[s]
    if not o then
      local packed = call('GET', akey(s))
      o = packed and unpack_(packed) or {{}, {}}
      olds[s] = o
    end
    return o[which - DAYS + 1]
  end

  local function window(which) return which == DAYS and DAY or 30 * DAY end

  -- The first day of the month that a day lies in; both are counted from 1970.
  local function monthOf(d)
    local z = d + 719468
    local e = z % 146097
    local year = floor((e - floor(e / 1460) + floor(e / 36524) - floor(e / 146096)) / 365)
    local inYear = e - (365 * year + floor(year / 4) - floor(year / 100))
    return d - inYear + floor((153 * floor((5 * inYear + 2) / 153) + 2) / 5)
  end

  local function part(a, which)
    if a[ROLLING] == 1 then
      local grid = window(which) / 288
      return now - now % grid, now - now % grid + grid
    end
    local d = floor(now / DAY)
    if which == DAYS then return d * DAY, (d + 1) * DAY end
    d = monthOf(d)
    return d * DAY, monthOf(d + 31) * DAY
  end

  local function ends(a, which, til)
    return a[ROLLING] == 1 and til + window(which) or til
  end

  local function add(x, y) return max(0, min(P52, x + y)) end

  local function all(p) return add(p[TOKENS], p[OLDTOKENS]), add(p[MONEY], p[OLDMONEY]) end

  -- What counts no more is forgotten.
  local function lapse(s, a, which)
    local p = a[which]
    if p[UNTIL] ~= 0 and ends(a, which, p[UNTIL]) <= now then
      if p[ENDS] ~= 0 then
        older(s, which)
        olds[s][which - DAYS + 1] = {}
        stale[s] = true
      end
      a[which] = {0, 0, 0, 0, 0, 0, 0}
      return a[which]
    end
    if p[ENDS] == 0 or p[ENDS] > now then return p end
    local list, kept, grid = older(s, which), {}, window(which) / 288
    p[OLDTOKENS], p[OLDMONEY], p[ENDS] = 0, 0, 0
    for k = 1, #list, 3 do
      local at = ends(a, which, list[k] + grid)
      if at > now then
        local n = #kept
        kept[n + 1], kept[n + 2], kept[n + 3] = list[k], list[k + 1], list[k + 2]
        p[OLDTOKENS], p[OLDMONEY] = add(p[OLDTOKENS], list[k + 1]), add(p[OLDMONEY], list[k + 2])
        if n == 0 then p[ENDS] = at end
      end
    end
    olds[s][which - DAYS + 1] = kept
    stale[s] = true
    return p
  end

  local function charge(s, a, which, tokens, money)
    local p = lapse(s, a, which)
    if now >= p[UNTIL] then
      if p[UNTIL] ~= 0 then
        local list = older(s, which)
        local n = #list
        list[n + 1], list[n + 2], list[n + 3] = p[FROM], p[TOKENS], p[MONEY]
        stale[s] = true
        p[OLDTOKENS], p[OLDMONEY] = add(p[OLDTOKENS], p[TOKENS]), add(p[OLDMONEY], p[MONEY])
        if p[ENDS] == 0 then p[ENDS] = ends(a, which, p[UNTIL]) end
      end
      p[FROM], p[UNTIL] = part(a, which)
      p[TOKENS], p[MONEY] = 0, 0
    end
    p[TOKENS], p[MONEY] = add(p[TOKENS], tokens), add(p[MONEY], money)
  end

  -- Adds what may be negative to what was spent at an instant, if that still counts.
  local function amend(s, a, which, at, tokens, money)
    local p = lapse(s, a, which)
    if at >= p[FROM] and at < p[UNTIL] then
      p[TOKENS], p[MONEY] = add(p[TOKENS], tokens), add(p[MONEY], money)
      return
    end
    local list, grid = p[ENDS] ~= 0 and older(s, which) or {}, window(which) / 288
    for k = 1, #list, 3 do
      if at >= list[k] and at < list[k] + grid then
        local t, m = add(list[k + 1], tokens), add(list[k + 2], money)
        p[OLDTOKENS], p[OLDMONEY] = add(p[OLDTOKENS], t - list[k + 1]), add(p[OLDMONEY], m - list[k + 2])
        list[k + 1], list[k + 2] = t, m
        stale[s] = true
        return
      end
    end
  end

  -- The instant from which cost fits within most, if nothing else is spent, and what is
  -- used now. The field is that of the tokens of a part, or of its money.
  local function room(s, a, which, cost, most, field)
    local p = lapse(s, a, which)
    local used = add(p[field], p[field + 2])
    if cost <= most - used then return now, used end
    local left = used
    if p[ENDS] ~= 0 then
      local list, grid = older(s, which), window(which) / 288
      for k = 1, #list, 3 do
        left = left - list[k + field - TOKENS + 1]
        if cost <= most - left then return ends(a, which, list[k] + grid), used end
      end
    end
    return ends(a, which, p[UNTIL]), used
  end

  -- Why a spend goes beyond an allowance of a path, or nil: the answer's code, scope,
  -- allowance, cost, what is left and the wait. Of several it is the longest wait, of
  -- equal ones the first.
  P.beyond = function(path, tokens, money)
    local worst, at = nil, now
    if tokens + money == 0 then return end
    for j = #path.s, 1, -1 do -- the innermost first
      local s = path.s[j]
      local a = warmed(s)
      for which = 1, a and 4 or 0 do
        local c, most = which % 2 == 1 and tokens or money, a[which]
        if c > 0 and most > 0 then
          if c > most then return {9, s[SNAME], which, c, most, 0} end
          local til, used = room(s, a, which < 3 and DAYS or MONTHS, c, most, which % 2 == 1 and TOKENS or MONEY)
          if til > at then
            at = til
            worst = {8, s[SNAME], which, c, max(0, most - used), til - now}
          end
        end
      end
    end
    return worst
  end

  P.charge = function(path, tokens, money)
    for _, s in ipairs(path.s) do
      local a = warmed(s)
      if a then
        charge(s, a, DAYS, tokens, money)
        charge(s, a, MONTHS, tokens, money)
      end
    end
  end

  P.amend = function(path, tokens, money, epoch, at)
    for _, s in ipairs(path.s) do
      local a = warmed(s)
      if a and a[SINCE] <= epoch then
        amend(s, a, DAYS, at, tokens, money)
        amend(s, a, MONTHS, at, tokens, money)
      end
    end
  end

  -- most is what may be spent, then 0 for none, 1 for calendar and 2 for rolling periods.
  -- What was spent stays, and counts as spent at the last instant of its part if the
  -- kind of the periods changes.
  P.allow = function(s, most)
    local a = warmed(s)
    if most[5] == 0 and not a then return end
    root[EPOCH] = root[EPOCH] + 1
    if not a then
      a = {0, 0, 0, 0, most[5] - 1, root[EPOCH], {0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0}, {{0, 0, 0}, {0, 0, 0}}}
      s[SPENDS], paying = a, true
    end
    for k = 1, 4 do a[k] = most[k] end
    if most[5] > 0 and most[5] - 1 ~= a[ROLLING] then
      local was = now
      local parts = {}
      for which = DAYS, MONTHS do
        local p, list = lapse(s, a, which), {}
        if p[ENDS] ~= 0 then
          local o, grid = older(s, which), window(which) / 288
          for k = 1, #o, 3 do list[#list + 1] = {o[k] + grid, o[k + 1], o[k + 2]} end
          olds[s][which - DAYS + 1] = {}
          stale[s] = true
        end
        if p[UNTIL] ~= 0 then list[#list + 1] = {p[UNTIL], p[TOKENS], p[MONEY]} end
        parts[which] = list
      end
      a[ROLLING] = most[5] - 1
      for which = DAYS, MONTHS do
        a[which] = {0, 0, 0, 0, 0, 0, 0}
        for _, x in ipairs(parts[which]) do
          now = min(was, x[1] - 1)
          charge(s, a, which, x[2], x[3])
        end
        now = was
      end
    end
    touch(s)
  end

  -- What counts now: tokens and money of the day, then of the month.
  P.used = function(s)
    local a = warmed(s)
    local dt, dm = all(lapse(s, a, DAYS))
    local mt, mm = all(lapse(s, a, MONTHS))
    return {dt, dm, mt, mm}
  end

  -- What a member knew at an instant of a state that was lost. Of what members knew the
  -- largest counts, and what was spent in this state comes on top.
  P.known = function(s, least, at)
    local a = warmed(s)
    if not a then return end
    for which = DAYS, MONTHS do
      local from, k = part(a, which), which - DAYS
      if a[ROLLING] == 1 then from = 0 end
      local was = a[KNOWN][k + 1]
      if was[1] ~= from then was = {from, 0, 0} end
      if at >= (a[ROLLING] == 1 and now - window(which) or from) then
        local tokens, money = max(was[2], least[2 * k + 1]), max(was[3], least[2 * k + 2])
        charge(s, a, which, tokens - was[2], money - was[3])
        was[2], was[3] = tokens, money
      end
      a[KNOWN][k + 1] = was
    end
    touch(s)
  end

  -- Packs what was unpacked, and returns how long in ms it counts.
  P.close = function(s)
    local a = warmed(s)
    local til = 0
    for which = DAYS, MONTHS do
      local p = lapse(s, a, which)
      if p[UNTIL] ~= 0 then til = max(til, ends(a, which, p[UNTIL])) end
    end
    s[SPENDS] = pack(a)
    local ms = til > now and floor((til - now) / 1000) + KEEP or KEEP
    local o = olds[s]
    if not stale[s] then return ms end
    if #o[1] + #o[2] > 0 then call('SET', akey(s), pack(o), 'PX', ms) else call('DEL', akey(s)) end
    return ms
  end

  return P
end

local kept = {} -- scope -> its packed gate, where nobody waited for it

local function warm(s) -- unpack what is cold in a scope
  if type(s[GATE]) == 'string' then
    kept[s] = s[GATE]
    s[GATE] = unpack_(s[GATE])
    if s[GATE][Q] > 0 then kept[s] = nil end
  end
  local g = s[GATE]
  for k = 0, #s[LIMITS] do
    local l = k == 0 and g or s[LIMITS][k]
    if l[COLD] ~= true then
      local c = unpack_(l[COLD])
      for j = 1, 10 do l[MORE + j] = c[j] end
      l[COLD] = true
    end
  end
end

local function cool(l)
  if l[COLD] == true then
    local c = {}
    for j = 1, 10 do
      c[j] = l[MORE + j]
      l[MORE + j] = nil
    end
    l[COLD] = pack(c)
  end
end

local function open(name, s)
  if s then
    for _, l in ipairs(s[LIMITS]) do advance(l) end
    paying = paying or s[SPENDS] ~= ''
    if M then warm(s) end
    if s[TAUGHT] ~= root[LEARN] then
      settings()
      warm(s)
      settings().teach(s)
    end
  end
  scopes[name] = s
  return s
end

local function get(name)
  local s = scopes[name]
  if s == nil then
    local packed = call('GET', pre .. 's:' .. name)
    s = open(name, packed and scopeOf(packed) or false)
  end
  return s
end

local function hold(who, field, n)
  local h = holds[who]
  if not h then h = {}; holds[who] = h end
  h[field] = (h[field] or 0) + n
end

-- What the open reservations of a process hold beside a window, in units and in output:
-- it is charged in end books once the process is gone.
local function bear(who, s, l, units, output)
  local field = s[SNAME] .. '\0' .. l[NAME]
  hold(who, field, units)
  if l[UNIT] == 3 then hold(who, field .. '\0', output) end
end

-- A path is what one call takes from: the root, further scopes, the tenant.
local function newPath(class, tenant, list)
  local all, weight = {root}, 1
  for _, name in ipairs(list) do
    local s = get(name)
    if s then all[#all + 1] = s end
  end
  if tenant ~= '' then
    local s = get(tenant)
    if s then
      all[#all + 1] = s
      weight = s[WEIGHT]
    end
  end
  return {class = class, tenant = tenant, names = list, s = all, weight = weight}
end

-- Give back (or charge, where negative) to every limit that charged it. held is what
-- calls of the process held that end. If it is not known, they held what comes back.
-- sent is there if one call cost more than it held, after a reading: when its attempt left,
-- the instant of its note, 1 if all was charged by then, and its name.
local function correct(who, path, refund, epoch, taken, held, sent)
  held = held or {max(0, refund[1]), max(0, refund[2]), max(0, refund[3])}
  for _, s in ipairs(path.s) do
    fold(s[REFUND], refund, 1)
    if sent then s[REFUND][4] = (s[REFUND][4] + max(0, -refund[2])) % P52 end
    for _, l in ipairs(s[LIMITS]) do
      local d = amount(refund, l[UNIT])
      if sent and l[MORE] and l[MORE][FOUND] and l[BORN] <= epoch then more().knew(l, refund, sent) end
      if d ~= 0 and l[BORN] <= epoch then
        if not l[MORE] then
          put(l, l[U] + d, l[R])
        elseif d > 0 then
          more().refund(l, taken, d)
        else
          more().spend(l, -d)
        end
      end
      if l[MORE] and l[MORE][WINDOW] and l[BORN] <= epoch then
        more().ended(l, taken, held, refund)
        bear(who, s, l, -amount(held, l[UNIT]), -held[3])
      end
    end
    touch(s)
    dirty[s] = true
  end
  if root[WAITN] > 0 then rest().retag(path, refund, epoch) end
end


---------------------------------------------------------------- the rest

local out = {'ok', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
rest = function()
  if M then return M end
  M = {}
  for _, s in pairs(scopes) do
    if s then warm(s) end
  end
  -- The name of a path's lane in the line.
  local function lane(path)
    local id = path.lane
    if not id then
      local a = {path.class, path.tenant}
      for j, name in ipairs(path.names) do a[j + 2] = name end
      id = pack(a)
      path.lane = id
    end
    return id
  end

  local function lineKey(s, l) return s[SNAME] .. '\0' .. l[NAME] end

  local function full(s) return s[MAXOPEN] > 0 and s[OPEN] >= s[MAXOPEN] end

  local function say(x) out[#out + 1] = x end

  local function find(s, name)
    for k, l in ipairs(s[LIMITS]) do
      if l[NAME] == name then return l, k end
    end
  end

  -- The least instant at which anybody may go in s.
  local function opens(s)
    if s[PROBEAFTER] > 0 then return min(s[PROBEAT], s[PAUSED]) end
    return s[PAUSED]
  end

  local lanes = {}
  local function laneOf(id)
    local path = lanes[id]
    if not path then
      local a = unpack_(id)
      local list = {}
      for j = 3, #a do list[j - 2] = a[j] end
      path = newPath(a[1], a[2], list)
      path.lane = id
      lanes[id] = path
    end
    return path
  end

  -- Where the shares of tenants ended in a line, while anybody waits in it. Written
  -- once, at the end.
  local ends = {} -- line -> tenant -> tag
  local function tagsOf(key)
    local e = ends[key]
    if not e then
      e = {}
      ends[key] = e
    end
    return e
  end
  local function endOf(key, tenant)
    local e = tagsOf(key)
    if e[tenant] == nil then e[tenant] = tonumber(call('HGET', pre .. 'f:' .. key, tenant) or 0) end
    return e[tenant]
  end
  local function writeEnds()
    for key, e in pairs(ends) do
      local list = {}
      for tenant, tag in pairs(e) do
        if tag > 0 then
          list[#list + 1] = tenant
          list[#list + 1] = string.format('%.17g', tag)
        end
      end
      if #list > 0 then
        -- It may be new if all of it is.
        if call('HSET', pre .. 'f:' .. key, unpack(list)) * 2 == #list then call('PEXPIRE', pre .. 'f:' .. key, LINE) end
      end
    end
  end


  -- Fair queueing: tags are in units of the line's limit over the tenant's weight.
  local function retag(path, refund, epoch)
    for _, s in ipairs(path.s) do
      for _, l in ipairs(s[LIMITS]) do
        local d = amount(refund, l[UNIT])
        if l[Q] > 0 and d ~= 0 and l[BORN] <= epoch then
          local key = lineKey(s, l)
          d = -d / path.weight
          local tag = endOf(key, path.tenant)
          if tag > 0 then tagsOf(key)[path.tenant] = tag + d end
          call('ZADD', pre .. 'q' .. path.class .. ':' .. key, 'XX', 'INCR', d, lane(path))
        end
      end
    end
  end

  -- Returns 1 if it goes as the probe of a pause.
  local function grant(who, path, cost, id, tokens, money)
    local probe = 0
    if paying and tokens + money > 0 then pay().charge(path, tokens, money) end
    for _, s in ipairs(path.s) do
      if now < s[PAUSED] then
        s[PROBER] = who .. ':' .. string.format('%.0f', id)
        probe = 1
      end
      s[OPEN] = s[OPEN] + 1
      fold(s[DEBIT], cost, 1)
      hold(who, s[SNAME], 1)
      for _, l in ipairs(s[LIMITS]) do
        local c = amount(cost, l[UNIT])
        if l[MORE] then
          more().take(l, c, cost[2])
          if l[MORE][WINDOW] then bear(who, s, l, c, cost[3]) end
        elseif c > 0 then
          put(l, l[U] - c, l[R])
        end
      end
      touch(s)
    end
    return probe
  end

  local function alive(who)
    if live[who] == nil then live[who] = call('ZSCORE', pre .. 'm', who) and true or false end
    return live[who]
  end

  -- While a scope is paused one call may be under way as a probe. One whose process
  -- is gone has failed.
  local function paused(s)
    if now >= s[PAUSED] then return false end
    if s[PROBER] ~= '' and not alive(string.match(s[PROBER], '^(.*):')) then
      s[PROBER], s[PROBEAT] = '', now + s[PROBEAFTER]
      touch(s)
    end
    return s[PROBEAT] == 0 or now < s[PROBEAT] or s[PROBER] ~= ''
  end

  -- The first line of the path that holds the cost up, with its scope. Who stands in
  -- the line `mine` has waited there, and for the lines before it.
  local function lacks(path, cost, mine)
    local queue = mine == nil
    for _, s in ipairs(path.s) do
      local g = s[GATE]
      if paused(s) or full(s) or (queue and g[Q] > 0) then return g, s end
      if g == mine then queue = true end
      for _, l in ipairs(s[LIMITS]) do
        local c = amount(cost, l[UNIT])
        if c > 0 and (queue and l[Q] > 0 or short(l, c)) then return l, s end
        if l == mine then queue = true end
      end
    end
  end

  -- When the cost could go with all that wait ahead of it, and the line that says so.
  local function forecast(path, cost, alone)
    local start, which, whose = now, nil, nil
    for _, s in ipairs(path.s) do
      local at = opens(s)
      if at > start then start, which, whose = at, s[GATE], s end
    end
    local at = start
    for _, s in ipairs(path.s) do
      for _, l in ipairs(s[LIMITS]) do
        local c = amount(cost, l[UNIT])
        local ahead = alone and 0 or amount(s[WAIT], l[UNIT])
        if c > 0 then
          local d = wait(l, start, ahead, c)
          if start + d > at then at, which, whose = start + d, l, s end
        end
      end
    end
    return at - now, which, whose
  end

  local function impossible(path, cost)
    for _, s in ipairs(path.s) do
      for _, l in ipairs(s[LIMITS]) do
        if amount(cost, l[UNIT]) > l[LARGEST] then return l, s end
      end
    end
  end

  ---------------------------------------------------------------- the line

  local function count(path, cost, sign) -- who waits, and what it will probably cost
    for _, s in ipairs(path.s) do
      s[WAITN] = s[WAITN] + sign
      for k = 1, 3 do s[WAIT][k] = s[WAIT][k] + sign * cost[k] end
      if s[WAITN] <= 0 then s[WAITN], s[WAIT] = 0, {0, 0, 0} end
      touch(s)
    end
  end

  local function qKey(s, l, class) return pre .. 'q' .. class .. ':' .. lineKey(s, l) end

  local function share(path, l, cost)
    if l[N] == 0 then return 1 / path.weight end
    return amount(cost, l[UNIT]) / path.weight
  end

  local heads = {} -- line -> the tag of its head, which waits for its turn

  -- Put the lane of path into the line of l: at the present virtual time, or where
  -- its tenant's last share ended.
  local function enter(path, s, l)
    local tag = l[V]
    if l[Q] > 0 then tag = max(tag, endOf(lineKey(s, l), path.tenant)) end
    local key = qKey(s, l, path.class)
    if call('ZADD', key, 'NX', tag, lane(path)) == 1 then
      l[Q] = l[Q] + 1
      if path.class > 0 then l[LOW] = l[LOW] + 1 end
      if l[Q] == 1 or l[LOW] == 1 or l[Q] - l[LOW] == 1 then call('PEXPIRE', key, LINE) end
    end
    touch(s)
    -- Behind a head that this call has looked at, nothing changes for it.
    if not heads[l] or tag <= heads[l] then dirty[s] = true end
  end

  local function depart(path, s, l)
    if call('ZREM', qKey(s, l, path.class), lane(path)) == 1 then
      l[Q] = l[Q] - 1
      if path.class > 0 then l[LOW] = l[LOW] - 1 end
    end
    if l[Q] <= 0 then
      l[Q], l[LOW], l[V], l[OWED], l[OWNER] = 0, 0, 0, 0, ''
      call('DEL', pre .. 'f:' .. lineKey(s, l))
      ends[lineKey(s, l)] = nil
      call('ZREM', pre .. 'd', lineKey(s, l))
    end
    touch(s)
  end

  -- The first lane of a line: the upper class, unless the lower is owed its tenth.
  local function first(s, l)
    local class = 0
    if l[LOW] > 0 and (l[LOW] >= l[Q] or l[OWED] > 0) then class = 1 end
    local a = call('ZRANGE', qKey(s, l, class), 0, 0, 'WITHSCORES')
    if not a[1] and l[LOW] > 0 then a = call('ZRANGE', qKey(s, l, 1 - class), 0, 0, 'WITHSCORES') end
    return a[1], tonumber(a[2])
  end

  local function due(s, l, head, cost, path)
    local at
    if l[N] == 0 then
      if now < s[PAUSED] then
        at = s[PAUSED]
        if s[PROBEAT] > 0 and s[PROBER] == '' then at = min(at, s[PROBEAT]) end
      end
    else
      at = now + max(1, wait(l, now, 0, amount(cost, l[UNIT])))
    end
    local key = lineKey(s, l)
    if not at then
      call('ZREM', pre .. 'd', key)
      l[OWNER] = ''
      return
    end
    local mark = head .. '@' .. string.format('%.0f', at)
    if l[OWNER] == mark then return end
    call('ZADD', pre .. 'd', at, key)
    if l[OWNER] == '' then call('PEXPIRE', pre .. 'd', LINE) end
    if head ~= pid then notices[head] = min(notices[head] or at, at) end
    l[OWNER] = mark
    touch(s)
  end

  local function post(who, m) -- what became of somebody in the line
    local list = posts[who]
    if not list then
      list = {}
      posts[who] = list
    end
    list[#list + 1] = m
  end

  local function schedule(s, l)
    heads[l] = nil
    while l[Q] > 0 do
      if steps <= 0 then
        call('ZADD', pre .. 'd', now, lineKey(s, l))
        l[OWNER] = ''
        touch(s)
        return
      end
      steps = steps - 1
      local id, tag = first(s, l)
      if not id then -- counted, but gone
        l[Q], l[LOW] = 0, 0
        depart({class = 0, lane = ''}, s, l)
        return
      end
      local path = laneOf(id)
      local lkey = pre .. 'l:' .. id
      local two = call('ZRANGE', lkey, 0, 1)
      local head = two[1]
      if not head then
        depart(path, s, l)
      else
        local w = unpack_(head)
        local cost = {w[3], w[4], w[5]}
        local lack, whose = lacks(path, cost, l)
        local beyond = lack ~= l and paying and pay().beyond(path, w[9], w[10])
        if not alive(w[1]) or impossible(path, cost) or beyond then
          call('ZREM', lkey, head)
          count(path, {w[6], w[7], w[8]}, -1)
          if not alive(w[1]) then
          elseif beyond then
            post(w[1], {w[2], -2, id, w[3], w[4], w[5], 0, 0, w[9], w[10], beyond})
          else
            post(w[1], {w[2], -1, id, w[3], w[4], w[5], impossible(path, cost)[NAME], 0, w[9], w[10]})
          end
        elseif lack == l then
          due(s, l, w[1], cost, path)
          if l[LOW] == 0 and l[Q] > 0 then heads[l] = tag end
          return
        elseif lack then
          depart(path, s, l)
          enter(path, whose, lack)
        else
          call('ZREM', lkey, head)
          count(path, {w[6], w[7], w[8]}, -1)
          local probe = grant(w[1], path, cost, w[2], w[9], w[10])
          post(w[1], {w[2], root[EPOCH], id, w[3], w[4], w[5], probe, now, w[9], w[10]})
          local c = share(path, l, cost)
          if l[LOW] > 0 and l[Q] > l[LOW] then
            if path.class > 0 then l[OWED] = l[OWED] - c else l[OWED] = l[OWED] + c / 9 end
          end
          l[V] = max(l[V], tag)
          tagsOf(lineKey(s, l))[path.tenant] = tag + c
          if two[2] then
            call('ZADD', qKey(s, l, path.class), 'XX', tag + c, id)
          else
            depart(path, s, l)
          end
        end
      end
    end
  end

  local function scheduleAll()
    for _ = 1, 4 do
      local list, any = dirty, false
      dirty = {}
      for _, s in ipairs(order) do
        if list[s] then
          any = true
          if s[GATE][Q] > 0 then schedule(s, s[GATE]) end
          for _, l in ipairs(s[LIMITS]) do
            if l[Q] > 0 then schedule(s, l) end
          end
        end
      end
      if not any then return end
    end
  end

  -- Modes: 0 now or never, 1 waits, 2 waits at the head of its lane, 3 only asks. As they
  -- are sent, with 4 if what is likely follows, and with 8 if what is spent does.
  local function refuse(code, path, cost, l, s, d)
    say(code)
    say(s and s[SNAME] or '')
    if not l then
      say('line')
      say(1)
      say(code == 5 and s[MAXQ] or 0)
    elseif l[N] == 0 then
      local what = now < s[PAUSED] and 'pause' or full(s) and 'in-flight' or 'line'
      say(what)
      say(what == 'pause' and 0 or 1)
      say(what == 'in-flight' and s[MAXOPEN] or 0)
    else
      say(l[NAME])
      say(amount(cost, l[UNIT]))
      say(l[LARGEST])
    end
    say(d)
    say(s and now < s[PAUSED] and s[BY] or '')
    say(s and now < s[PAUSED] and s[WHY] or '')
  end

  -- One who could not be admitted at once.
  local function ask(path, mode, id, longest, cost, likely, tokens, money)
    local l, s = impossible(path, cost)
    local beyond = not l and paying and pay().beyond(path, tokens, money)
    if l then
      refuse(3, path, cost, l, s, 0)
    elseif beyond then
      for _, x in ipairs(beyond) do say(x) end
    else
      local inLane = path.joins or path.inLane
      if inLane == nil then
        inLane = root[WAITN] > 0 and call('EXISTS', pre .. 'l:' .. lane(path)) == 1
        path.inLane = inLane
      end
      l, s = lacks(path, cost)
      if mode == 3 then
        if l then
          local d, which, whose = forecast(path, cost)
          refuse(4, path, cost, which or l, whose or s, d)
        else
          say(0)
          say(0)
        end
      elseif not l then -- it needs nothing that anybody waits for
        say(0)
        say(grant(pid, path, cost, id, tokens, money))
      elseif mode == 0 then
        local d, which, whose = forecast(path, cost)
        if l and l[N] == 0 and full(s) then d, which, whose = 0, l, s end
        refuse(4, path, cost, which or l, whose or s or root, d)
      else
        -- Alone in its line, the wait is that of all ahead; among other lanes it
        -- depends on weights, and only its own cost is sure.
        local apart = mode == 2 or l and l[Q] > (inLane and 1 or 0)
        local d, which, whose = forecast(path, cost, apart)
        local turn = apart and forecast(path, cost) or d
        local crowd = nil
        for _, s2 in ipairs(path.s) do
          local sum = s2[WAIT][1] + s2[WAIT][2] + s2[WAIT][3] + likely[1] + likely[2] + likely[3]
          if sum > P51 or mode == 1 and s2[MAXQ] > 0 and s2[WAITN] >= s2[MAXQ] then crowd = s2 end
        end
        if crowd then
          refuse(5, path, cost, nil, crowd, turn)
        elseif longest >= 0 and d > longest then
          refuse(6, path, cost, which, whose, d)
        else
          root[SEQ] = root[SEQ] + 1
          local seq = root[SEQ]
          if mode == 2 then seq = seq - P52 end
          path.joins = path.joins or {}
          path.joins[#path.joins + 1] = seq
          path.joins[#path.joins + 1] = pack({pid, id, cost[1], cost[2], cost[3], likely[1], likely[2], likely[3], tokens, money})
          count(path, likely, 1)
          if not inLane then
            enter(path, s, l)
          elseif mode == 2 then
            for _, s2 in ipairs(path.s) do dirty[s2] = true end
          end
          say(1)
          say(seq)
          say(turn)
        end
      end
    end
  end
  -- The caller that stands at seq keeps its place, at another price.
  local function reprice(path, seq, cost, likely)
    local lkey = pre .. 'l:' .. lane(path)
    local was = call('ZRANGEBYSCORE', lkey, seq, seq)[1]
    if not was or impossible(path, cost) then return false end
    local w = unpack_(was)
    local old = {w[6], w[7], w[8]}
    local more = likely[1] + likely[2] + likely[3] - old[1] - old[2] - old[3]
    for _, s in ipairs(path.s) do
      if s[WAIT][1] + s[WAIT][2] + s[WAIT][3] + more > P51 then return false end
    end
    for k = 1, 3 do w[2 + k], w[5 + k] = cost[k], likely[k] end
    local new = pack(w)
    if new ~= was then -- the new one first: a line without anybody loses its end
      call('ZADD', lkey, seq, new)
      call('ZREM', lkey, was)
    end
    for _, s in ipairs(path.s) do
      for k = 1, 3 do s[WAIT][k] = s[WAIT][k] + likely[k] - old[k] end
      touch(s)
      dirty[s] = true
    end
    return true
  end

  M.find = find
  M.reprice = reprice
  M.opens = opens
  M.laneOf = laneOf
  M.retag = retag
  M.alive = alive
  M.lineKey = lineKey
  M.qKey = qKey
  M.enter = enter
  M.count = count
  M.schedule = schedule
  M.scheduleAll = scheduleAll
  M.grant = grant
  M.ask = ask
  M.writeEnds = writeEnds
  M.lane = lane
  return M
end

---------------------------------------------------------------- settings

-- What changes scopes and limits: most calls change none.
local C -- what settings made
settings = function()
  if C then return C end
  rest()
  C = {}
  local function spend(u, r, n, span, w)
    local q, s = muldiv(n, span, w)
    r = r - s
    if r < 0 then return u - q - 1, r + w end
    return u - q, r
  end

  local function less(u, r, u2, r2) return u < u2 or u == u2 and r < r2 end

  local function lower(l, u, r)
    if not less(u, r, l[U], l[R]) then return false end
    if l[MORE] then more().trim(l) end
    put(l, u, r)
    return true
  end

  -- What the level would be had nothing set it back.
  local function real(l)
    local u, r = l[U], l[R]
    if now < l[HELD] then
      u, r = u + l[TU], r + l[TR]
      if r >= l[W] then u, r = u + 1, r - l[W] end
      if u >= l[BURST] then u, r = l[BURST], 0 end
    end
    return u, r
  end

  local function took(l, u, r) -- how far u, r is above the level
    u, r = u - l[U], r - l[R]
    if r < 0 then u, r = u - 1, r + l[W] end
    l[TU], l[TR] = u, r
  end

  -- Lower l so that `units` are there after span, and nothing beyond.
  local function setBack(l, units, span)
    local ru, rr = real(l)
    local u, r = spend(units, 0, l[N], span, l[W])
    if not lower(l, u, r) then return false end
    l[HELD] = now + span
    took(l, ru, rr)
    return true
  end

  -- A changed rate: the units stay, the remainder is rounded down to the new grain,
  -- and what a pause or a drain wants there to be at its end is there at the new rate.
  local function change(l, n, w, burst, largest)
    local left = max(0, l[HELD] - now)
    local ru, rr = real(l)
    local tu, tr = earn(l[U], l[R], l[N], left, l[W])
    local old = l[W]
    local was = l[MORE] and more().before(l)
    rr, tr = muldiv(rr, w, old), muldiv(tr, w, old)
    local r = muldiv(l[R], w, old)
    l[N], l[W], l[BURST], l[LARGEST] = n, w, burst, largest
    put(l, l[U], r)
    if l[MORE] then more().after(l, was, old) end
    if left == 0 then return end
    tu, tr = spend(tu, tr, n, left, w)
    local u = l[U]
    r = l[R]
    if u < 0 then u, r = 0, 0 end
    if less(tu, tr, u, r) then u, r = tu, tr end
    if less(ru, rr, u, r) then u, r = ru, rr end
    put(l, u, r)
    took(l, ru, rr)
  end

  local function newLine(name, d, born)
    return {name, d[1], d[2], d[3], d[4], d[5], d[4], 0, now, born, 0, true, false, d[6], d[7], 0, 0, 0, 0, 0, 0, '', false}
  end

  local function create(name)
    local s = {name, 0, '', '', 0, 0, 0, 1, 0, {0, 0, 0}, {0, 0, 0}, {0, 0, 0, 0},
      newLine('', {0, 0, 0, 0, 0, 0, 0, 0, ''}, 0), {}, 0, 0, 0, '', ''}
    scopes[name] = s
    touch(s)
    return s
  end

  -- d is unit, N, W, burst, largest, the last two as set, 1 if it starts empty, and
  -- the rest, packed.
  -- An N of zero removes the limit, which is returned.
  local function setLimit(s, name, d)
    local l, k = M.find(s, name)
    touch(s)
    dirty[s] = true
    if d[2] == 0 then
      if l then more().drop(l); table.remove(s[LIMITS], k); root[EPOCH] = root[EPOCH] + 1 end
      return l
    end
    if not l then
      root[EPOCH] = root[EPOCH] + 1
      l = newLine(name, d, root[EPOCH])
      if d[8] == 1 then l[U] = 0 end
      if d[9] ~= '' then more().obey(s, l, d[9]) end
      table.insert(s[LIMITS], l)
      return nil, l
    end
    root[EPOCH] = root[EPOCH] + 1
    change(l, d[2], d[3], d[4], d[5])
    l[RB], l[RL] = d[6], d[7]
    if l[MORE] and l[UNIT] ~= d[1] then l[MORE][UNDERWAY], l[MORE][YOUNG], l[MORE][YOUNGIN] = 0, 0, 0 end
    if l[MORE] or d[9] ~= '' then more().obey(s, l, d[9]) end
    if l[UNIT] ~= d[1] then l[UNIT], l[BORN] = d[1], root[EPOCH] end
    return nil, l
  end

  local function readLimit()
    return {nx(), nx(), nx(), nx(), nx(), nx(), nx(), nx(), nx()}
  end

  local function configure(s, name, d)
    local gone, l = setLimit(s, name, d)
    if l then l[CONF] = d end
    return gone
  end

  -- The definition of a scope as the process would make it.
  local function readDef(apply)
    local d, most = {nx(), nx(), nx()}, {nx(), nx(), nx(), nx(), nx()}
    local n = nx()
    for _ = 1, n do
      local name, limit = nx(), readLimit()
      if apply then configure(apply, name, limit) end
    end
    if apply then
      apply[MAXOPEN], apply[MAXQ], apply[WEIGHT] = d[1], d[2], d[3]
      pay().allow(apply, most)
    end
  end

  local function pauseScope(s, span, probe, by, why, keep)
    if span <= 0 and probe <= 0 then return end
    if span <= 0 then span = P52 - now end
    local at = now + span -- until then nobody goes at all
    if probe > 0 and probe < span then at = now + probe else probe = 0 end
    if now < s[PAUSED] and now + span <= s[PAUSED] then
      if s[PROBEAFTER] == 0 then return end
      at = max(at, s[PROBEAT]) -- a new pause renews the wait for a probe
      s[PROBEAT], s[PROBER] = at, ''
    else
      if now < s[PAUSED] then at = max(at, M.opens(s)) end
      s[PAUSED], s[BY], s[WHY] = now + span, by, why
      s[PROBEAFTER], s[PROBEAT], s[PROBER] = probe, probe > 0 and at or 0, ''
    end
    for _, l in ipairs(s[LIMITS]) do
      if l[W] <= MINUTE and keep == 0 then setBack(l, l[UNIT] == 0 and 1 or 0, at - now) end
    end
    touch(s)
    dirty[s] = true
  end

  -- A pause that ends before its time: limits start from nothing now, not then. So
  -- they do after a probe.
  local function resume(s)
    local probed = now < s[PAUSED] and s[PROBEAFTER] > 0 and s[PROBEAT] <= now
    s[PROBEAFTER], s[PROBEAT], s[PROBER] = 0, 0, ''
    touch(s)
    dirty[s] = true
    if s[PAUSED] <= now then return end
    s[PAUSED] = now
    for _, l in ipairs(s[LIMITS]) do
      local first = l[UNIT] == 0 and 1 or 0
      if l[W] <= MINUTE and now < l[HELD] then
        local u, r = real(l)
        if less(first, 0, u, r) then u, r = first, 0 end
        put(l, u, r)
        l[HELD] = now
      elseif l[W] <= MINUTE and probed then
        setBack(l, first, 0)
      end
    end
  end

  -- After a gap in the state nothing is known, so the level is at most what was
  -- earned since the learning period ended.
  local function teach(s)
    if s[TAUGHT] == root[LEARN] then return end
    s[TAUGHT] = root[LEARN]
    for _, l in ipairs(s[LIMITS]) do
      if l[W] <= MINUTE then
        local first = l[UNIT] == 0 and 1 or 0
        if now < root[LEARN] then
          setBack(l, first, root[LEARN] - now)
        else
          lower(l, earn(first, 0, l[N], now - root[LEARN], l[W]))
        end
        if l[MORE] then more().unlearn(l, min(now, root[LEARN]), root[BLIND]) end
      end
    end
    touch(s)
  end

  C.setBack = setBack
  C.lower = lower
  C.pauseScope = pauseScope
  C.resume = resume
  C.create = create
  C.setLimit = setLimit
  C.configure = configure
  C.readLimit = readLimit
  C.readDef = readDef
  C.teach = teach
  C.took = took
  return C
end

---------------------------------------------------------------- the root

local fresh = not found[1]
if fresh then
  if hello == 0 then return pack({'unknown'}) end
  root = settings().create('')
  root[REV], root[GEN], root[SEQ], root[EPOCH], root[LAST], root[SWEEP], root[LEARN], root[CONFIG], root[OFFSET], root[MEMBERS], root[BLIND] =
    0, now, 0, 0, now, now + ttl, 0, '', 0, 0, -1
  call('DEL', pre .. 'm') -- their places went with the state: each tells them anew
else
  root = found[1]
  scopes[''] = root
  if hello == 0 and p[5] ~= root[GEN] then return pack({'unknown'}) end -- a member of what was lost
  -- After a failover another machine's clock may be behind: the budget's own time
  -- goes on from where it was, and never back.
  now = now + root[OFFSET]
  if now < root[LAST] then
    root[OFFSET] = root[OFFSET] + root[LAST] - now
    now = root[LAST]
  end
  for _, l in ipairs(root[LIMITS]) do advance(l) end
  paying = root[SPENDS] ~= ''
end

-- A gap: the state is older than what a member has seen, or was lost and a member
-- remembers it, or all members were away at once.
local sameState = knownGen == root[GEN]
local gap = (sameState and seen > root[REV])
  or (had == 1 and not sameState and root[LEARN] == 0) -- a newcomer may have made it anew
local apart = now - root[LAST] > ttl and call('ZCARD', pre .. 'm') > 0
if gap or apart then
  -- What the shares sent meanwhile is bounded where nothing else is missing.
  root[BLIND] = gap and -1 or now - root[LAST] + learnFor
  gap = true
  -- Others may have seen a little more: they are not to find the same gap again.
  if sameState then root[REV] = max(root[REV], seen) + 1000000 end
  root[LEARN] = now + learnFor
  root[SWEEP] = now + ttl + learnFor
  settings().pauseScope(root, learnFor, 0, 'store', 'learning after a gap in the state', 0)
end
root[REV] = root[REV] + 1
root[LAST] = now
touch(root)

for k = 2, ns do
  if scopes[names[k]] == nil then open(names[k], found[k] or false) end
end
if next(defs) then
  local back = pos
  for k = 1, ns do
    if defs[k] then
      local s = scopes[names[k]]
      local apply = nil
      if not s then
        apply = settings().create(names[k])
      elseif k == 1 and hello == 1 and root[CONFIG] ~= config then
        apply = s
      end
      if k == 1 and hello == 1 then root[CONFIG] = config end
      if apply then
        pos = defs[k]
        settings().readDef(apply)
        if k > 1 then settings().teach(apply) end
      end
    end
  end
  pos = back
end
if gap then
  root[TAUGHT] = 0
  settings().teach(root)
end

local paths = {}
for k = 1, nx() do
  local class, tenant, list = A[pos + 1], A[pos + 2], {}
  pos = pos + 2
  local lost = tenant > 0 and must[tenant] and not get(names[tenant])
  for j = 1, nx() do
    local x = nx()
    list[j] = names[x]
    lost = lost or must[x] and not get(list[j])
  end
  if tenant > 0 then tenant = names[tenant] else tenant = '' end
  local path = newPath(class, tenant, list)
  path.lost = lost
  paths[k] = path
end

---------------------------------------------------------------- members

if hello == 1 or now - p[3] > ttl / 8 then
  call('ZADD', pre .. 'm', now, pid)
  call('PEXPIRE', pre .. 'm', KEEP)
  call('PEXPIRE', pre .. 'h:' .. pid, KEEP)
  call('PEXPIRE', pre .. 'i:' .. pid, KEEP)
  p[3] = now
  if hello == 1 then root[MEMBERS] = call('ZCARD', pre .. 'm') end
end
if now >= root[SWEEP] then
  root[SWEEP] = now + ttl / 4
  for _, who in ipairs(call('ZRANGEBYSCORE', pre .. 'm', '-inf', now - ttl, 'LIMIT', 0, 4)) do
    if who ~= pid then
      call('ZREM', pre .. 'm', who)
      live[who] = false
      -- What it was granted and never heard of was never sent.
      for _, m in ipairs(call('LRANGE', pre .. 'i:' .. who, 0, 255)) do
        m = unpack_(m)
        if m[2] >= 0 then
          local path = rest().laneOf(m[3])
          correct(who, path, {m[4], m[5], m[6]}, m[2], m[8])
          if paying then pay().amend(path, -m[9], -m[10], m[2], m[8]) end
        end
      end
      local h, less = call('HGETALL', pre .. 'h:' .. who), holds[who] or {}
      holds[who] = nil
      for k = 1, #h, 2 do
        local name, limit, output = string.match(h[k], '^(%Z*)%z?(%Z*)(%z?)$')
        local s, n = get(name), max(0, tonumber(h[k + 1]) + (less[h[k]] or 0))
        if s and name == h[k] then
          s[OPEN] = max(0, s[OPEN] - n)
        elseif s then
          local l = rest().find(s, limit)
          if l and l[MORE] then more().lapsed(l, n, output ~= '') end
        end
        if s then
          touch(s)
          dirty[s] = true
        end
      end
      call('DEL', pre .. 'h:' .. who, pre .. 'i:' .. who)
      local dead = call('GET', pre .. 'p:' .. who)
      if dead then
        dead = unpack_(dead)
        dead[4] = 1
        call('SET', pre .. 'p:' .. who, pack(dead), 'PX', KEEP)
      end
      for name, s in pairs(scopes) do -- its turns are skipped; look at the lines
        if s and s[WAITN] > 0 then touch(s); dirty[s] = true end
      end
    end
  end
  root[MEMBERS] = call('ZCARD', pre .. 'm')
end

-- Places that the process holds: told when it comes (back).
for _ = 1, nx() do
  local s, n = scopes[names[nx()]], nx()
  if s then
    s[OPEN] = s[OPEN] + n
    hold(pid, s[SNAME], n)
    touch(s)
  end
end

---------------------------------------------------------------- what ended

for _ = 1, nx() do
  local path, epoch, taken, places = paths[nx()], nx(), nx(), nx()
  local refund, held = {nx(), nx(), nx()}, nil
  local kind, sent = places % 4, nil
  places = floor(places / 4)
  if kind % 2 == 1 then held = {nx(), nx(), nx()} end
  if kind >= 2 then sent = {nx(), nx(), nx(), pid .. ':' .. string.format('%.0f', nx())} end
  for _, s in ipairs(path.s) do
    if places > 0 then
      s[OPEN] = max(0, s[OPEN] - places)
      hold(pid, s[SNAME], -places)
      touch(s)
      dirty[s] = true
    end
  end
  if held or refund[1] ~= 0 or refund[2] ~= 0 or refund[3] ~= 0 then correct(pid, path, refund, epoch, taken, held, sent) end
  local tokens, money = nx(), nx()
  if paying and (tokens ~= 0 or money ~= 0) then
    if taken == 0 then -- never charged here: a share spent it, or the state was lost
      pay().charge(path, max(0, -tokens), max(0, -money))
    else
      pay().amend(path, -tokens, -money, epoch, taken)
    end
    for _, s in ipairs(path.s) do touch(s) end
  end
end

-- Who gave up waiting. The place in the line is found by its number.
for _ = 1, nx() do
  local path, seq = paths[nx()], nx()
  local likely = {nx(), nx(), nx()}
  if call('ZREMRANGEBYSCORE', pre .. 'l:' .. rest().lane(path), seq, seq) == 1 then
    rest().count(path, likely, -1)
    for _, s in ipairs(path.s) do dirty[s] = true end
    out[#out + 1] = 1
  else
    out[#out + 1] = 0
  end
end

-- What those who wait cost now. A price that no wait can make admissible is not taken.
for _ = 1, nx() do
  local path, seq = paths[nx()], nx()
  local cost, likely = {nx(), nx(), nx()}, {nx(), nx(), nx()}
  out[#out + 1] = rest().reprice(path, seq, cost, likely) and 1 or 0
end

---------------------------------------------------------------- what changed

local changes = nx()
if changes > 0 then settings() end
for _ = 1, changes do
  local kind, name = nx(), names[nx()]
  local s = get(name)
  if kind == 1 then -- pause
    local span, probe, keep, by, why = nx(), nx(), nx(), nx(), nx()
    C.pauseScope(s or C.create(name), span, probe, by, why, keep)
  elseif kind == 2 then -- resume
    if s then C.resume(s) end
  elseif kind == 3 then -- drain
    local limit, keep, span = nx(), nx(), nx()
    local l = s and M.find(s, limit)
    local fell = l and C.setBack(l, keep, span)
    if l and l[MORE] then
      fell = more().refused(l, keep, span) or fell
      touch(s)
      dirty[s] = true
    end
    if fell then touch(s); dirty[s] = true end
    out[#out + 1] = fell and 1 or 0
  elseif kind == 4 then -- lower: what was left at `at`, when the sums were these
    local limit, remaining, at, refused, young = nx(), nx(), nx(), nx(), nx()
    local d, f, b = {nx(), nx(), nx()}, {nx(), nx(), nx()}, {nx(), nx(), nx()}
    local owed, by = nx(), pid .. ':' .. string.format('%.0f', nx())
    local l = s and M.find(s, limit)
    local fell = false
    if l then
      local out, back, near = {}, {}, {}
      for k = 1, 3 do
        if young == 1 then d[k] = s[DEBIT][k] end -- what left since may be in the reading
        out[k] = (s[DEBIT][k] - d[k]) % P52
        back[k] = (s[REFUND][k] - f[k]) % P52
        near[k] = (d[k] - b[k]) % P52
        if out[k] > P52 / 2 then out[k] = out[k] - P52 end
        if back[k] > P52 / 2 then back[k] = back[k] - P52 end
        if near[k] > P52 / 2 then near[k] = near[k] - P52 end
      end
      -- Readings count what was found from the first one on, and never from nothing.
      s[REFUND][4] = max(1, s[REFUND][4])
      back[2] = back[2] + (s[REFUND][4] - owed) % P52
      local unit, late, ofSending, margin = l[UNIT], false, true, 0
      local charged, returned = amount(out, unit), amount(back, unit)
      at = min(at, now)
      if l[MORE] then
        margin = more().margin(l)
        late, ofSending = more().late(l, remaining, at,
          (amount(s[DEBIT], unit) - amount(s[REFUND], unit)) % P52, (amount(d, unit) - amount(f, unit)) % P52)
      end
      -- Both sums are within 2^52 either way: with what is left they may pass it.
      local u, r = earn(max(-P52, min(remaining - margin - charged, P52)) + returned, 0, l[N], now - at, l[W])
      local said, u0, r0 = at, l[U], l[R]
      if not ofSending and u < remaining - margin then
        u, r = remaining - margin, 0
        if late then said = now end
      end
      fell = C.lower(l, u, r)
      if fell then
        l[MORE] = l[MORE] or {false, false, false, '', 0, 0, false, false, 0, 0, 0, 0}
        more().heard(l, u0, r0, said, by)
        l[TU], l[TR] = 0, 0
        touch(s)
        dirty[s] = true
      elseif now < l[HELD] then -- what was taken below it
        local tu, tr = l[TU], l[TR]
        C.took(l, u, r)
        if (tu < l[TU] or tu == l[TU] and tr < l[TR]) then l[TU], l[TR] = tu, tr end
        touch(s)
      end
      if l[MORE] and refused == 0 then -- what a refusal shows is no balance to go by
        if late then at, charged, returned = now, 0, 0 end
        fell = more().saw(l, at, remaining, charged, returned, max(0, amount(near, unit))) or fell
      end
      if l[MORE] then
        touch(s)
        dirty[s] = true
      end
    end
    out[#out + 1] = fell and 1 or 0
  elseif kind == 5 or kind == 8 then -- a limit, configured or only in force
    local limit, d = nx(), C.readLimit()
    s = s or C.create(name)
    local gone
    if kind == 5 then
      gone = C.configure(s, limit, d)
    else
      local l = M.find(s, limit)
      local conf = l and l[CONF] or false
      if d[2] == 0 and conf then d = conf end
      local _, made
      gone, made = C.setLimit(s, limit, d)
      if made then made[CONF] = conf end
    end
    if gone and gone[Q] > 0 then -- nobody waits for a limit that is no more
      for class = 0, 1 do
        for _, id in ipairs(call('ZRANGE', M.qKey(s, gone, class), 0, -1)) do M.enter(M.laneOf(id), s, s[GATE]) end
        call('DEL', M.qKey(s, gone, class))
      end
      call('DEL', pre .. 'f:' .. M.lineKey(s, gone))
      call('ZREM', pre .. 'd', M.lineKey(s, gone))
    end
  elseif kind == 6 then -- a scope's options
    local open, queue, weight = nx(), nx(), nx()
    s = s or C.create(name)
    s[MAXOPEN], s[MAXQ], s[WEIGHT] = open, queue, weight
    pay().allow(s, {nx(), nx(), nx(), nx(), nx()})
    touch(s)
    dirty[s] = true
  elseif kind == 9 then -- how a probe ended: 1 settled, 2 kept, 3 never sent
    local path, id, how = paths[nx()], nx(), nx()
    id = pid .. ':' .. string.format('%.0f', id)
    for _, s in ipairs(path.s) do
      if s[PROBER] == id then
        s[PROBER] = ''
        if how == 1 then C.resume(s) end
        if how == 2 then s[PROBEAT] = now + s[PROBEAFTER] end
        touch(s)
        dirty[s] = true
      end
    end
  elseif kind == 11 then -- a note
    local key, text = nx(), nx()
    key = string.sub(key, 1, 256)
    local nkey = pre .. 'n:' .. name
    if call('HLEN', nkey) < 64 or call('HEXISTS', nkey, key) == 1 then
      call('HSET', nkey, key, string.format('%.0f:', now) .. text)
      call('PEXPIRE', nkey, KEEP)
      root[EPOCH] = root[EPOCH] + 1
    end
  elseif kind == 10 then -- an attempt that left then was not refused
    local path, sent = paths[nx()], nx()
    for _, s in ipairs(path.s) do
      for _, l in ipairs(s[LIMITS]) do
        if l[MORE] then
          more().passed(l, sent)
          touch(s)
          dirty[s] = true
        end
      end
    end
  elseif kind == 12 then -- what the member last knew of a scope's allowances
    local least, at, of = {nx(), nx(), nx(), nx()}, nx(), nx()
    if s and of ~= root[GEN] then pay().known(s, least, at) end
  elseif kind == 7 then -- what the member last knew of a long window
    local limit, units, at = nx(), nx(), nx()
    local l = s and M.find(s, limit)
    if l and C.lower(l, earn(units, 0, l[N], max(0, now - at), l[W])) then touch(s) end
    if l and l[MORE] and more().known(l, units) then touch(s) end
  end
end

-- Lines whose time has come, then those that something was given back to.
if root[WAITN] > 0 then
  rest()
  for _, key in ipairs(call('ZRANGEBYSCORE', pre .. 'd', '-inf', now, 'LIMIT', 0, 16)) do
    local cut = string.find(key, '\0', 1, true)
    local s = get(string.sub(key, 1, cut - 1))
    local l = s and (cut == #key and s[GATE] or M.find(s, string.sub(key, cut + 1)))
    if l then
      touch(s)
      dirty[s] = true
    else
      call('ZREM', pre .. 'd', key)
    end
  end
  M.scheduleAll()
end

---------------------------------------------------------------- who asks

-- The way of most: nobody waits, no pause, a place, and credit in every limit. It
-- is written out, for each function call would cost as much as it does. Callers of one
-- path that come one after the other are admitted by what is there for each unit, and
-- are taken from the limits together. The first one for whom that is not enough, and
-- one of another kind, is looked at alone.
local news = false
local na, k = nx(), 0
while k < na do
  local path = paths[A[pos + 1]]
  local flat, ps = path.flat, path.s
  if not flat then
    flat = {}
    for j = 1, #ps do
      for _, l in ipairs(ps[j][LIMITS]) do
        flat[#flat + 1] = l
        path.more = path.more or l[MORE]
        if l[MORE] and l[MORE][WINDOW] then
          path.ends = path.ends or {}
          path.ends[#path.ends + 1] = {ps[j], l}
        end
      end
    end
    path.flat, path.n, path.sum = flat, 0, {0, 0, 0}
  end
  -- The places that are free, and the units that any cost may take.
  local free, fr, fi, fo, ft = 0, P53, P53, P53, P53
  if not path.more and not path.lost and root[WAITN] == 0 then
    free = P53
    for j = 1, #ps do
      local s = ps[j]
      if now < s[PAUSED] then free = 0 elseif s[MAXOPEN] > 0 then free = min(free, s[MAXOPEN] - s[OPEN]) end
    end
    for j = 1, #flat do
      local l = flat[j]
      local unit, left = l[UNIT], l[U]
      if left > l[LARGEST] then left = l[LARGEST] end
      if unit == 0 then
        if left < fr then fr = left end
      elseif unit == 1 then
        if left < fi then fi = left end
      elseif unit == 2 then
        if left < fo then fo = left end
      elseif left < ft then
        ft = left
      end
    end
  end
  local n, r, i, o, len = 0, 0, 0, 0, #out
  while n < free and k < na and paths[A[pos + 1]] == path and A[pos + 2] < 3 do
    local cr, ci, co = A[pos + 5], A[pos + 6], A[pos + 7]
    if r + cr > fr or i + ci > fi or o + co > fo or i + ci + o + co > ft then break end
    n, r, i, o = n + 1, r + cr, i + ci, o + co
    out[len + 1], out[len + 2] = 0, 0
    len, pos, k = len + 2, pos + 7, k + 1
  end
  if n > 0 then
    for j = 1, #flat do
      local l = flat[j]
      local unit = l[UNIT]
      l[U] = l[U] - (unit == 0 and r or unit == 1 and i or unit == 2 and o or i + o)
    end
    for j = 1, #ps do ps[j][OPEN] = ps[j][OPEN] + n end
    local sum = path.sum
    path.n, sum[1], sum[2], sum[3] = path.n + n, sum[1] + r, sum[2] + i, sum[3] + o
  end
  if k < na and paths[A[pos + 1]] == path then
    local mode, id, longest, cr, ci, co = A[pos + 2], A[pos + 3], A[pos + 4], A[pos + 5], A[pos + 6], A[pos + 7]
    pos, k = pos + 7, k + 1
    -- What it will probably cost, and spend, is sent where it differs.
    local likely, tokens, money = nil, 0, 0
    if mode >= 8 then
      tokens, money = A[pos + 1], A[pos + 2]
      pos, mode = pos + 2, mode - 8
    end
    if mode >= 4 then
      likely = {A[pos + 1], A[pos + 2], A[pos + 3]}
      pos, mode = pos + 3, mode - 4
    end
    local ok = mode ~= 3 and not path.lost and root[WAITN] == 0
    if ok then
      for j = 1, #ps do
        local s = ps[j]
        if now < s[PAUSED] or s[MAXOPEN] > 0 and s[OPEN] >= s[MAXOPEN] then ok = false end
      end
      for j = 1, #flat do
        local l = flat[j]
        local unit = l[UNIT]
        local c = unit == 0 and cr or unit == 1 and ci or unit == 2 and co or ci + co
        if c > 0 and (c > l[LARGEST] or l[MORE] and not more().admits(l, c) or l[U] < c and l[U] < l[BURST] and not l[MORE]) then ok = false end
      end
      if ok and paying and tokens + money > 0 and pay().beyond(path, tokens, money) then ok = false end
    end
    if ok then
      for j = 1, #flat do
        local l = flat[j]
        local unit = l[UNIT]
        local c = unit == 0 and cr or unit == 1 and ci or unit == 2 and co or ci + co
        if l[MORE] then more().take(l, c, ci) else l[U] = l[U] - c end
      end
      for _, x in ipairs(path.ends or {}) do bear(pid, x[1], x[2], amount({cr, ci, co}, x[2][UNIT]), co) end
      for j = 1, #ps do ps[j][OPEN] = ps[j][OPEN] + 1 end
      if paying and tokens + money > 0 then pay().charge(path, tokens, money) end
      local sum = path.sum
      path.n, sum[1], sum[2], sum[3] = path.n + 1, sum[1] + cr, sum[2] + ci, sum[3] + co
      out[#out + 1] = 0
      out[#out + 1] = 0
    elseif path.lost then
      out[#out + 1] = 7
    else
      rest().ask(path, mode, id, longest, {cr, ci, co}, likely or {cr, ci, co}, tokens, money)
    end
  end
end
for _, path in ipairs(paths) do
  if path.n and path.n > 0 then
    for _, s in ipairs(path.s) do
      fold(s[DEBIT], path.sum, 1)
      hold(pid, s[SNAME], path.n)
      touch(s)
    end
  end
end
for _, path in ipairs(paths) do
  if path.joins then
    call('ZADD', pre .. 'l:' .. path.lane, unpack(path.joins))
    if not path.inLane then call('PEXPIRE', pre .. 'l:' .. path.lane, LINE) end
  end
end
if root[WAITN] > 0 then rest().scheduleAll() end
if M then M.writeEnds() end

---------------------------------------------------------------- the answer

local mail = {}
if waiting > 0 then
  for k, m in ipairs(call('LPOP', pre .. 'i:' .. pid, 64) or {}) do mail[k] = unpack_(m) end
end
out[10] = (#mail == 64 or steps <= 0) and 1 or 0
for who, list in pairs(posts) do
  if who == pid then
    for _, m in ipairs(list) do mail[#mail + 1] = m end
  else
    for k, m in ipairs(list) do list[k] = pack(m) end
    if call('RPUSH', pre .. 'i:' .. who, unpack(list)) == #list then call('PEXPIRE', pre .. 'i:' .. who, KEEP) end
    call('PUBLISH', pre .. 'w:' .. who, '0')
  end
end
out[#out + 1] = #mail
for _, m in ipairs(mail) do
  out[#out + 1] = m[1]
  out[#out + 1] = m[2]
  out[#out + 1] = m[7]
  out[#out + 1] = m[8]
  for _, x in ipairs(m[11] or {}) do out[#out + 1] = x end
end

news = knownEpoch ~= root[EPOCH] or hello == 1
out[#out + 1] = (news or levels == 1) and 1 or 0
out[#out + 1] = root[LEARN]
for k = 1, ns do
  local s = scopes[names[k]]
  if not s then
    out[#out + 1] = 0
  else
    out[#out + 1] = 1
    out[#out + 1] = s[PAUSED]
    for j = 1, 3 do out[#out + 1] = s[DEBIT][j] end
    for j = 1, 4 do out[#out + 1] = s[REFUND][j] end
    local spent = 0
    for _, l in ipairs(s[LIMITS]) do
      if l[MORE] then
        local at = more().spent(l)
        if at > 0 and (spent == 0 or at < spent) then spent = at end
      end
    end
    out[#out + 1] = spent
    local full = news or levels == 1
    if s[SPENDS] ~= '' and (full or type(s[SPENDS]) == 'table') then
      out[#out + 1] = full and 2 or 1
      for _, x in ipairs(pay().used(s)) do out[#out + 1] = x end
      for j = DAYTOKENS, full and ROLLING or 0 do out[#out + 1] = s[SPENDS][j] end
    else
      out[#out + 1] = 0
    end
    if news or levels == 1 then
      rest()
      out[#out + 1] = s[MAXOPEN]
      out[#out + 1] = #s[LIMITS]
      for _, l in ipairs(s[LIMITS]) do
        for j = NAME, LARGEST do out[#out + 1] = l[j] end
        local n = #out
        out[n + 1], out[n + 2], out[n + 3], out[n + 4] = l[RB], l[RL], l[U], ''
        if l[MORE] then out[n + 3], out[n + 4] = more().credit(l), l[MORE][TEXT] end
      end
      local notes = call('HGETALL', pre .. 'n:' .. names[k])
      out[#out + 1] = #notes / 2
      local at = {}
      for j = 1, #notes, 2 do at[notes[j]] = notes[j + 1] end
      local sorted = {}
      for key in pairs(at) do sorted[#sorted + 1] = key end
      table.sort(sorted)
      for _, key in ipairs(sorted) do
        local cut = string.find(at[key], ':', 1, true)
        local n = #out
        out[n + 1], out[n + 2], out[n + 3] = key, tonumber(string.sub(at[key], 1, cut - 1)), string.sub(at[key], cut + 1)
      end
    end
  end
end

-- A question about the state (0 or 1), answered as a tree.
if nx() == 1 then
  rest()
  for k = 1, ns do
    local s = scopes[names[k]]
    if not s then
      out[#out + 1] = 0
    else
      out[#out + 1] = 1
      for _, j in ipairs({PAUSED, BY, WHY, MAXOPEN, OPEN, MAXQ, WEIGHT, WAITN, PROBEAT}) do out[#out + 1] = s[j] end
      out[#out + 1] = s[PROBER] ~= '' and 1 or 0
      out[#out + 1] = #s[LIMITS]
      for _, l in ipairs(s[LIMITS]) do
        for j = NAME, LARGEST do out[#out + 1] = l[j] end
        for _, j in ipairs({RB, RL}) do out[#out + 1] = l[j] end
        local held, capacity, level, text = 0, l[BURST], l[U], ''
        if l[MORE] then
          held, capacity, level, text = more().held(l), more().capacity(l), more().credit(l), l[MORE][TEXT]
        end
        for _, v in ipairs({level, held, capacity, text, amount(s[WAIT], l[UNIT])}) do out[#out + 1] = v end
        local c = l[CONF] or {0, 0, 0, 0, 0, 0, 0, 0, ''}
        for _, j in ipairs({1, 2, 3, 6, 7}) do out[#out + 1] = c[j] end
        out[#out + 1] = c[9] or ''
      end
    end
  end
end

for who, h in pairs(holds) do
  for name, n in pairs(h) do
    if n ~= 0 then
      local key = pre .. 'h:' .. who
      local sum = call('HINCRBY', key, name, n)
      if sum == n then call('PEXPIRE', key, KEEP) end -- it may be new
      if sum <= 0 then call('HDEL', key, name) end
    end
  end
end

if waiting > 0 or root[WAITN] > 0 then
  local d = call('ZRANGE', pre .. 'd', 0, 0, 'WITHSCORES')
  if d[1] then
    out[8] = tonumber(d[2])
    rest()
    local cut = string.find(d[1], '\0', 1, true)
    local s = get(string.sub(d[1], 1, cut - 1))
    local l = s and (cut == #d[1] and s[GATE] or M.find(s, string.sub(d[1], cut + 1)))
    if l and string.sub(l[OWNER], 1, #pid + 1) == pid .. '@' then out[9] = 1 end
  end
end

if bye == 1 then root[MEMBERS] = root[MEMBERS] - 1 end

-- A scope is remembered until it is full, unpaused and without a caller, and for
-- an hour at least: a key that ends sooner would forgive what is owed.
for _, s in ipairs(order) do
  local ms = KEEP
  for _, l in ipairs(s[LIMITS]) do
    if l[U] < l[BURST] then ms = max(ms, (l[BURST] - l[U]) * l[W] / l[N] / 999 + 1000) end
    local m = l[MORE]
    if m then
      ms = max(ms, l[W] / 500 + KEEP)
      if m[TEXT] == '' and not (m[GUARD] or m[WINDOW] or m[READ] or m[FOUND]) then l[MORE] = false end
    end
  end
  if s[PAUSED] > now then ms = max(ms, (s[PAUSED] - now) / 1000 + KEEP) end
  if s[WAITN] > 0 or s[OPEN] > 0 then ms = max(ms, LINE) end
  if s[SPENDS] ~= '' then ms = max(ms, pay().close(s)) end
  if M then
    for _, l in ipairs(s[LIMITS]) do cool(l) end
    if kept[s] and s[GATE][Q] == 0 then
      s[GATE] = kept[s]
    else
      cool(s[GATE])
      s[GATE] = pack(s[GATE])
    end
  end
  -- Redis prints a number that it is given, which takes longer than a text.
  call('SET', pre .. 's:' .. s[SNAME], pack(LAYOUT, s), 'PX', ms == KEEP and HOUR or floor(min(ms, P52 / 1000)))
end

out[2], out[3], out[4], out[11] = now, root[REV], root[GEN], gap and 1 or 0
out[5], out[6], out[7] = root[EPOCH], root[MEMBERS], root[WAITN]
for who, at in pairs(notices) do
  if not posts[who] then call('PUBLISH', pre .. 'w:' .. who, string.format('%.0f', at - now)) end
end

-- A process that leaves in peace is no member from now on, and its keys go.
if bye == 1 then
  call('ZREM', pre .. 'm', pid)
  call('DEL', pre .. 'h:' .. pid, pre .. 'i:' .. pid)
end

local reply = pack(out)
call('SET', pkey, pack({number, reply, p[3], bye, root[GEN]}), 'PX', HOUR)
return reply
