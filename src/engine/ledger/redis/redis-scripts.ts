import type { Queue } from '../payment-lifecycle.ts'
import { type AmountLimit, factOf, type LimitedAmount } from '../ledger.ts'
import { FORMAT } from '../record-codec.ts'
import type { SchemeStateChange } from '../scheme-state.ts'
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
}

const INDEXES = {
  ages: KEYS.ages,
  undelivered: KEYS.undelivered,
  money: KEYS.dues('money'),
  blocks: KEYS.dues('blocks'),
  cleanup: KEYS.dues('cleanup'),
  identifiers: KEYS.identifiers,
}

/** Stores a record and updates all indexes. */
const PUT = `
local function put(payment, id, token, record, member, queue, due, identifier)
  redis.call('SET', payment, token .. '\\n' .. identifier .. '\\n' .. record)
  if member ~= '' then redis.call('ZADD', undelivered, 0, member) end
  for name, dues in pairs({ money = money, blocks = blocks, cleanup = cleanup }) do
    if due ~= '' and name == queue then redis.call('ZADD', dues, due, id) else redis.call('ZREM', dues, id) end
  end
  if identifier ~= '' then redis.call('HSET', identifiers, identifier, id) end
end`

function putValues({ id, token, record, undelivered, queue, due, identifier }: Stored): string[] {
  return [id, token, record, undelivered, queue, due, identifier]
}

/** Returns the conflicting record, if there is one. */
export function insert(identity: StoreIdentity, stored: Stored): Script {
  const { id, token, record, age, undelivered: member, queue, due, identifier } = stored
  return guarded(
    identity,
    { payment: KEYS.payment(id), ...INDEXES },
    { payments: KEYS.payment(''), id, token, record, age, member, queue, due, identifier },
    `${PUT}
     local standing = redis.call('GET', payment)
     local other = identifier ~= '' and redis.call('HGET', identifiers, identifier)
     if not standing and other then standing = redis.call('GET', payments .. other) end
     if standing then return standing end
     redis.call('ZADD', ages, 0, age)
     put(payment, id, token, record, member, queue, due, identifier)
     return false`,
  )
}

interface StoredChange {
  readonly previous: Pick<Stored, 'id' | 'token' | 'age' | 'undelivered'>
  readonly next: Stored | undefined
}

/** Returns 1, or 0 when a record does not have the previous token any more: then nothing has changed. */
export function commit(
  identity: StoreIdentity,
  changes: readonly StoredChange[],
  stateChanges: readonly SchemeStateChange[],
): Script {
  const { lua, keys, values } = guarded(
    identity,
    { ...INDEXES, states: KEYS.states },
    { changes: changes.length, stateChanges: stateChanges.length },
    `${PUT}
     local count, width = tonumber(changes), 11
     local first, place = #KEYS - count, #ARGV - count * width
     local before = place - 4 * tonumber(stateChanges)
     for at = before + 1, place, 4 do
       local value = redis.call('HGET', states, ARGV[at])
       if string.match(value or '0\\n', '^(%d+)\\n') ~= ARGV[at + 1] then return 0 end
     end
     local olds = {}
     for change = 1, count do
       local value = redis.call('GET', KEYS[first + change])
       local token, identifier = string.match(value or '', '^(.-)\\n(.-)\\n')
       if not value or token ~= ARGV[place + (change - 1) * width + 1] then return 0 end
       olds[change] = identifier
     end
     for change = 1, count do
       local payment = KEYS[first + change]
       local at = place + (change - 1) * width
       local age, member, kind = ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
       local id, identifier = ARGV[at + 5], ARGV[at + 11]
       if member ~= '' and member ~= ARGV[at + 8] then redis.call('ZREM', undelivered, member) end
       if olds[change] ~= '' and olds[change] ~= identifier then redis.call('HDEL', identifiers, olds[change]) end
       if kind == 'put' then
         put(payment, id, ARGV[at + 6], ARGV[at + 7], ARGV[at + 8], ARGV[at + 9], ARGV[at + 10], identifier)
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
     return 1`,
  )
  const states = stateChanges.flatMap(({ previous: { name, version }, next }) => [
    name,
    version,
    next === undefined ? 'delete' : 'put',
    next ?? '',
  ])
  const operands = changes.flatMap(({ previous, next }) => {
    const { token, age, undelivered } = previous
    const put = next === undefined ? [previous.id, '', '', '', '', '', ''] : putValues(next)
    return [token, age, undelivered, next === undefined ? 'delete' : 'put', ...put]
  })
  return {
    lua,
    keys: [...keys, ...changes.map(({ previous }) => KEYS.payment(previous.id))],
    values: [...values, ...states, ...operands],
  }
}

export function remember(identity: StoreIdentity, name: string, fact: string, until: number): Script {
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
export function rememberWithin(
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
export function recall(identity: StoreIdentity, name: string, now: number): Script {
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
