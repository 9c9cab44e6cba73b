import type { Queue } from '../payment-lifecycle.ts'
import { type AmountLimit, factOf, type LimitedAmount } from '../ledger.ts'
import { FORMAT } from '../record-codec.ts'
import type { SchemeStateChange } from '../scheme-state.ts'
import { COUNTED_DAYS, MOST_NAMES } from '../daily-counts.ts'
import { DAY_MS, nameText, type TotalChange, type TotalKind } from '../sales-totals.ts'
import type { StoreIdentity } from '../store-identity.ts'

/** The braces keep all keys of the ledger in one slot of a cluster. */
const PREFIX = '{ratecard}:'

export const KEYS = {
  format: `${PREFIX}format`,
  identity: `${PREFIX}identity`,
  /** Sorted by the text of its members: creation time, id. */
  ages: `${PREFIX}ages`,
  /** Sorted by the text of its members: buyer, creation time, id. */
  undelivered: `${PREFIX}undelivered`,
  /** Ids of a queue by their due time. */
  dues: (queue: Queue) => `${PREFIX}dues:${queue}`,
  /** Id of the record with an identifier. */
  identifiers: `${PREFIX}identifiers`,
  /** Names of facts by the time at which the last of each expires. */
  ends: `${PREFIX}ends`,
  payment: (id: string) => `${PREFIX}payment:${id}`,
  /** Facts of a name by their expiry. */
  facts: (name: string) => `${PREFIX}facts:${name}`,
  /** What schemes keep, by name. */
  states: `${PREFIX}states`,
  /** Sorted by the text of its members: name of a search, creation time, id. */
  found: `${PREFIX}found`,
  /** `current` and `next` set of totals, and `until` when the records of the next one are counted. */
  totalSets: `${PREFIX}totals`,
  /** Totals of a day by name, three fields each. */
  totals: (set: string, kind: TotalKind, date: string) => `${PREFIX}totals:${set}:${kind}:${date}`,
  /** What is counted on a day, by name. */
  counts: (date: string) => `${PREFIX}counts:${date}`,
  lease: (name: string) => `${PREFIX}lease:${name}`,
  answer: (id: string, attempt: number, place: number) => `${PREFIX}answer:${id}:${attempt}:${place}`,
} as const

/** A program that Redis runs atomically. */
export interface Script {
  readonly lua: string
  readonly keys: readonly string[]
  readonly values: readonly (string | number)[]
}

/** The program uses keys and values by the names given here. */
function script(
  keys: Readonly<Record<string, string>>,
  values: Readonly<Record<string, string | number>>,
  program: string,
): Script {
  const names = [...Object.keys(keys), ...Object.keys(values)].join(', ')
  const places = [
    ...Object.keys(keys).map((_, at) => `KEYS[${at + 1}]`),
    ...Object.keys(values).map((_, at) => `ARGV[${at + 1}]`),
  ].join(', ')
  return {
    lua: `local ${names} = ${places}\n${program}`,
    keys: Object.values(keys),
    values: Object.values(values),
  }
}

/** Refused when a newer version has migrated the store, or the store was emptied or replaced since it was opened. */
function guarded(identity: StoreIdentity, ...[keys, values, program]: Parameters<typeof script>): Script {
  return script(
    { format: KEYS.format, identity: KEYS.identity, ...keys },
    { FORMAT, IDENTITY: identity, ...values },
    `local found = redis.call('GET', format)
     if found and found ~= FORMAT then return redis.error_reply('FORMAT') end
     if redis.call('GET', identity) ~= IDENTITY then return redis.error_reply('IDENTITY') end
     ${program}`,
  )
}

/** Gives an empty store the format of this version, and a store without an identity this one; returns both. */
export function identify(identity: StoreIdentity): Script {
  return script(
    { format: KEYS.format, identity: KEYS.identity },
    { FORMAT, IDENTITY: identity },
    `redis.call('SETNX', format, FORMAT)
     if redis.call('GET', format) == FORMAT then redis.call('SETNX', identity, IDENTITY) end
     return redis.call('MGET', format, identity)`,
  )
}

/** Gives the store this identity, whatever it was before. */
export function reidentify(identity: StoreIdentity): Script {
  return script(
    { format: KEYS.format, identity: KEYS.identity },
    { FORMAT, IDENTITY: identity },
    `redis.call('SETNX', format, FORMAT)
     if redis.call('GET', format) ~= FORMAT then return redis.error_reply('FORMAT') end
     redis.call('SET', identity, IDENTITY)`,
  )
}

/** The stored parts of a record; an empty text stands for a missing one. */
export interface Stored {
  readonly id: string
  readonly token: string
  readonly record: string
  readonly age: string
  readonly undelivered: string
  readonly queue: Queue
  readonly due: string
  readonly identifier: string
  /** Members of the index for searches, each on a line. */
  readonly found: string
}

const INDEXES = {
  ages: KEYS.ages,
  searched: KEYS.found,
  totalSets: KEYS.totalSets,
  undelivered: KEYS.undelivered,
  money: KEYS.dues('money'),
  blocks: KEYS.dues('blocks'),
  cleanup: KEYS.dues('cleanup'),
  identifiers: KEYS.identifiers,
}

/** Stores a record and updates all indexes. */
const PUT = `
local function put(payment, id, token, record, member, queue, due, identifier, names)
  for name in string.gmatch(names, '[^\\n]+') do redis.call('ZADD', searched, 0, name) end
  redis.call('SET', payment, token .. '\\n' .. identifier .. '\\n' .. record)
  if member ~= '' then redis.call('ZADD', undelivered, 0, member) end
  for name, dues in pairs({ money = money, blocks = blocks, cleanup = cleanup }) do
    if due ~= '' and name == queue then redis.call('ZADD', dues, due, id) else redis.call('ZREM', dues, id) end
  end
  if identifier ~= '' then redis.call('HSET', identifiers, identifier, id) end
end`

function putValues({ id, token, record, undelivered, queue, due, identifier, found }: Stored): string[] {
  return [id, token, record, undelivered, queue, due, identifier, found]
}

/**
 * Adds to totals. Redis adds whole numbers of 64 bits only, so an amount is kept in two fields; a sum that is larger still
 * stays as it is, since payments must not fail for it.
 */
const ADD = `
local function add(set, day, name, payments, high, low)
  local key = totalSets .. ':' .. set .. ':' .. day
  local counted = redis.pcall('HINCRBY', key, name .. ' n', payments)
  redis.pcall('HINCRBY', key, name .. ' h', high)
  redis.pcall('HINCRBY', key, name .. ' l', low)
  if counted == 0 then redis.call('HDEL', key, name .. ' n', name .. ' h', name .. ' l') end
end
local sets = redis.call('HMGET', totalSets, 'current', 'next', 'until')
local function change(created, day, name, payments, high, low)
  add(sets[1] or '0', day, name, payments, high, low)
  if sets[2] and tonumber(created) <= tonumber(sets[3]) then add(sets[2], day, name, payments, high, low) end
end`

/** A changed total with the time of creation of its record. */
export interface StoredTotalChange {
  readonly createdAt: number
  readonly change: TotalChange
}

const TOTAL_WIDTH = 6

function totalValues({ createdAt, change: { date, of, payments, amount } }: StoredTotalChange): string[] {
  const [high, low] = [amount / HALF, amount % HALF]
  return [
    String(createdAt),
    `${of.kind}:${date}`,
    nameText(of),
    String(payments),
    high.toString(),
    low.toString(),
  ]
}

/** What the two fields of an amount are split by. */
export const HALF = 1_000_000_000n

/** Returns the conflicting record, if there is one. */
export function insert(
  identity: StoreIdentity,
  stored: Stored,
  totals: readonly StoredTotalChange[],
): Script {
  const { id, token, record, age, undelivered: member, queue, due, identifier, found: names } = stored
  const { lua, keys, values } = guarded(
    identity,
    { payment: KEYS.payment(id), ...INDEXES },
    { payments: KEYS.payment(''), id, token, record, age, member, queue, due, identifier, names },
    `${PUT}${totals.length === 0 ? '' : ADD}
     local standing = redis.call('GET', payment)
     local other = identifier ~= '' and redis.call('HGET', identifiers, identifier)
     if not standing and other then standing = redis.call('GET', payments .. other) end
     if standing then return standing end
     redis.call('ZADD', ages, 0, age)
     put(payment, id, token, record, member, queue, due, identifier, names)
     for at = #ARGV - ${totals.length * TOTAL_WIDTH} + 1, #ARGV, ${TOTAL_WIDTH} do change(unpack(ARGV, at, at + ${TOTAL_WIDTH - 1})) end
     return false`,
  )
  return { lua, keys, values: [...values, ...totals.flatMap(totalValues)] }
}

/** The token of the predecessor of a new record. */
export const NO_RECORD = ''

interface StoredChange {
  readonly previous: Pick<Stored, 'id' | 'token' | 'age' | 'undelivered' | 'found'>
  readonly next: Stored | undefined
}

/** Returns 1, or 0 when a record does not have the previous token any more, or a new one is there: then nothing has changed. */
export function commit(
  identity: StoreIdentity,
  changes: readonly StoredChange[],
  stateChanges: readonly SchemeStateChange[],
  totals: readonly StoredTotalChange[],
): Script {
  const { lua, keys, values } = guarded(
    identity,
    { ...INDEXES, states: KEYS.states },
    { changes: changes.length, stateChanges: stateChanges.length, totals: totals.length },
    `${PUT}${totals.length === 0 ? '' : ADD}
     local count, width = tonumber(changes), 13
     local ending = #ARGV - tonumber(totals) * ${TOTAL_WIDTH}
     local first, place = #KEYS - count, ending - count * width
     local before = place - 4 * tonumber(stateChanges)
     for at = before + 1, place, 4 do
       local value = redis.call('HGET', states, ARGV[at])
       if string.match(value or '0\\n', '^(%d+)\\n') ~= ARGV[at + 1] then return 0 end
     end
     local olds = {}
     for change = 1, count do
       local value = redis.call('GET', KEYS[first + change])
       local token, identifier = string.match(value or '', '^(.-)\\n(.-)\\n')
       local at = place + (change - 1) * width
       if ARGV[at + 1] ~= '${NO_RECORD}' then
         if not value or token ~= ARGV[at + 1] then return 0 end
       elseif value or (ARGV[at + 12] ~= '' and redis.call('HGET', identifiers, ARGV[at + 12])) then
         return 0
       end
       olds[change] = identifier or ''
     end
     for change = 1, count do
       local payment = KEYS[first + change]
       local at = place + (change - 1) * width
       local age, member, kind = ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
       local id, identifier = ARGV[at + 6], ARGV[at + 12]
       for name in string.gmatch(ARGV[at + 5], '[^\\n]+') do redis.call('ZREM', searched, name) end
       if member ~= '' and member ~= ARGV[at + 9] then redis.call('ZREM', undelivered, member) end
       if olds[change] ~= '' and olds[change] ~= identifier then redis.call('HDEL', identifiers, olds[change]) end
       if kind == 'put' then
         if ARGV[at + 1] == '${NO_RECORD}' then redis.call('ZADD', ages, 0, age) end
         put(payment, id, unpack(ARGV, at + 7, at + 13))
       else
         redis.call('DEL', payment)
         redis.call('ZREM', ages, age)
         for _, dues in ipairs({ money, blocks, cleanup }) do redis.call('ZREM', dues, id) end
       end
     end
     for at = before + 1, place, 4 do
       local name, version, kind, text = unpack(ARGV, at, at + 3)
       if kind == 'put' then
         redis.call('HSET', states, name, string.format('%d', version + 1) .. '\\n' .. text)
       else
         redis.call('HDEL', states, name)
       end
     end
     for at = ending + 1, #ARGV, ${TOTAL_WIDTH} do change(unpack(ARGV, at, at + ${TOTAL_WIDTH - 1})) end
     return 1`,
  )
  const states = stateChanges.flatMap(({ previous: { name, version }, next }) => [
    name,
    version,
    next === undefined ? 'delete' : 'put',
    next ?? '',
  ])
  const operands = changes.flatMap(({ previous, next }) => {
    const { token, age, undelivered, found } = previous
    // What stays is not removed first.
    const kept = next === undefined ? [] : next.found.split('\n')
    const gone = found.split('\n').filter((name) => !kept.includes(name))
    const put = next === undefined ? [previous.id, '', '', '', '', '', '', ''] : putValues(next)
    return [token, age, undelivered, next === undefined ? 'delete' : 'put', gone.join('\n'), ...put]
  })
  return {
    lua,
    keys: [...keys, ...changes.map(({ previous }) => KEYS.payment(previous.id))],
    values: [...values, ...states, ...operands, ...totals.flatMap(totalValues)],
  }
}

/** The time until which the records of the next set of totals are counted; begins one when there is none. */
export function beginTotals(identity: StoreIdentity): Script {
  return guarded(
    identity,
    { totalSets: KEYS.totalSets },
    {},
    `if redis.call('HEXISTS', totalSets, 'next') == 0 then
       local current = tonumber(redis.call('HGET', totalSets, 'current') or '0')
       redis.call('HSET', totalSets, 'next', current + 1, 'until', 0)
     end
     return redis.call('HGET', totalSets, 'until')`,
  )
}

/** A record of a page of totals, as it was read. */
export type CountedRecord = Pick<Stored, 'id' | 'token'>

/**
 * Counts a page of records in the next set of totals: all that were created after `from` until `until`. Returns 0 when
 * one of them has changed since it was read, or another process has counted them.
 */
export function countTotals(
  identity: StoreIdentity,
  records: readonly CountedRecord[],
  { from, until, span }: { readonly from: number; readonly until: number; readonly span: readonly string[] },
  totals: readonly TotalChange[],
): Script {
  const [first = '', last = ''] = span
  const { lua, keys, values } = guarded(
    identity,
    { totalSets: KEYS.totalSets, ages: KEYS.ages },
    { first, last, counted: records.length, from, ending: until, changes: totals.length },
    `${ADD}
     if sets[3] ~= from then return 0 end
     if redis.call('ZLEXCOUNT', ages, first, last) ~= tonumber(counted) then return 0 end
     local place = #ARGV - tonumber(changes) * ${TOTAL_WIDTH}
     local before = place - tonumber(counted)
     for at = 1, tonumber(counted) do
       local token = string.match(redis.call('GET', KEYS[#KEYS - tonumber(counted) + at]) or '', '^(.-)\\n')
       if token ~= ARGV[before + at] then return 0 end
     end
     for at = place + 1, #ARGV, ${TOTAL_WIDTH} do add(sets[2], unpack(ARGV, at + 1, at + ${TOTAL_WIDTH - 1})) end
     redis.call('HSET', totalSets, 'until', ending)
     return 1`,
  )
  return {
    lua,
    keys: [...keys, ...records.map(({ id }) => KEYS.payment(id))],
    values: [
      ...values,
      ...records.map(({ token }) => token),
      ...totals.flatMap((change) => totalValues({ createdAt: 0, change })),
    ],
  }
}

/** Lets readers see the next set of totals, once all records until `from` are counted in it. Returns its number. */
export function finishTotals(identity: StoreIdentity, from: number): Script {
  return guarded(
    identity,
    { totalSets: KEYS.totalSets },
    { from },
    `local sets = redis.call('HMGET', totalSets, 'next', 'until')
     if sets[1] and sets[2] == from then
       redis.call('HSET', totalSets, 'current', sets[1])
       redis.call('HDEL', totalSets, 'next', 'until')
     end
     return redis.call('HGET', totalSets, 'current')`,
  )
}

/** Adds to the numbers of a day. */
export function addCounts(
  identity: StoreIdentity,
  date: string,
  counts: ReadonlyMap<string, number>,
): Script {
  const { lua, keys, values } = guarded(
    identity,
    { counts: KEYS.counts(date) },
    { most: MOST_NAMES, added: counts.size, ending: Date.parse(date) + COUNTED_DAYS * DAY_MS },
    `for at = #ARGV - 2 * tonumber(added) + 1, #ARGV, 2 do
       if redis.call('HEXISTS', counts, ARGV[at]) == 1 or redis.call('HLEN', counts) < tonumber(most) then
         redis.call('HINCRBY', counts, ARGV[at], ARGV[at + 1])
       end
     end
     redis.call('PEXPIREAT', counts, ending)`,
  )
  return { lua, keys, values: [...values, ...Array.from(counts).flat()] }
}

export function addExpiring(identity: StoreIdentity, name: string, fact: string, until: number): Script {
  return guarded(
    identity,
    { facts: KEYS.facts(name), ends: KEYS.ends },
    { name, fact, ending: until },
    `redis.call('ZADD', facts, ending, fact)
     redis.call('ZADD', ends, redis.call('ZRANGE', facts, -1, -1, 'WITHSCORES')[2], name)
     return redis.call('ZCARD', facts)`,
  )
}

/**
 * Keeps an amount under a name within a limit, and returns nothing; or the time at which it fits. Lua counts in doubles,
 * which are exact here: a sum is at most the limit, which is far below 2^53.
 */
export function addWithinLimit(
  identity: StoreIdentity,
  name: string,
  amount: LimitedAmount,
  { count, sum }: AmountLimit,
  now: number,
): Script {
  const { value, until } = amount
  return guarded(
    identity,
    { facts: KEYS.facts(name), ends: KEYS.ends },
    {
      name,
      fact: factOf(amount),
      value: value.toString(),
      ending: until,
      most: count,
      largest: sum === undefined ? 'inf' : sum.toString(),
      now,
    },
    `redis.call('ZREMRANGEBYSCORE', facts, '-inf', now)
     if redis.call('ZSCORE', facts, fact) then return false end
     local kept = redis.call('ZRANGE', facts, 0, -1, 'WITHSCORES')
     local function valueAt(place) return tonumber(string.match(kept[place], '%d+$')) end
     local total = tonumber(value)
     for place = 1, #kept, 2 do total = total + valueAt(place) end
     local place = 1
     while place < #kept and not ((#kept - place + 1) / 2 < tonumber(most) and (largest == 'inf' or total <= tonumber(largest))) do
       total = total - valueAt(place)
       place = place + 2
     end
     if place > 1 then return kept[place - 1] end
     redis.call('ZADD', facts, ending, fact)
     redis.call('ZADD', ends, redis.call('ZRANGE', facts, -1, -1, 'WITHSCORES')[2], name)
     return false`,
  )
}

/** Returns the facts of a name. Deletes expired ones, and some names whose facts have all expired. */
export function listExpiring(identity: StoreIdentity, name: string, now: number): Script {
  return guarded(
    identity,
    { facts: KEYS.facts(name), ends: KEYS.ends },
    { every: KEYS.facts(''), now },
    `redis.call('ZREMRANGEBYSCORE', facts, '-inf', now)
     for _, name in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, 100)) do
       redis.call('DEL', every .. name)
       redis.call('ZREM', ends, name)
     end
     return redis.call('ZRANGE', facts, 0, -1)`,
  )
}

/**
 * Takes or renews a lease for `length` milliseconds. Answers with the fence and what was left, or with nothing when
 * another process has the lease. One that seems to have begun in the future is held for its length from now: the clock
 * has been set back.
 */
export function lease(identity: StoreIdentity, name: string, owner: string, length: number): Script {
  return guarded(
    identity,
    { lease: KEYS.lease(name) },
    { owner, length },
    `local time = redis.call('TIME')
     local now = time[1] * 1000 + math.floor(time[2] / 1000)
     local held = redis.call('HMGET', lease, 'owner', 'end', 'fence', 'left', 'length')
     if held[1] and held[1] ~= owner and tonumber(held[2]) > now then
       local latest = now + tonumber(held[5])
       if tonumber(held[2]) > latest then redis.call('HSET', lease, 'end', string.format('%d', latest)) end
       return false
     end
     local fence = held[3]
     if held[1] ~= owner then fence = redis.call('HINCRBY', lease, 'fence', 1) end
     redis.call('HSET', lease, 'owner', owner, 'end', string.format('%d', now + length), 'length', length)
     return { fence, held[4] or '' }`,
  )
}

/** Does nothing when the fence differs: another process holds the lease. */
export function release(identity: StoreIdentity, name: string, fence: number, left: string): Script {
  return guarded(
    identity,
    { lease: KEYS.lease(name) },
    { fence, left },
    `if redis.call('HGET', lease, 'fence') ~= fence then return end
     redis.call('HSET', lease, 'owner', '', 'end', 0, 'left', left)`,
  )
}
