import { FORMAT } from './format.ts'

/** The braces keep all keys of the ledger in one slot of a cluster. */
const PREFIX = '{ratecard}:'

export const KEYS = {
  format: `${PREFIX}format`,
  /** Sorted by the text of its members: time of creation, id. */
  ages: `${PREFIX}ages`,
  /** Sorted by the text of its members: buyer, time of creation, id. */
  buyers: `${PREFIX}buyers`,
  /** Ids by the time when they are due. */
  dues: `${PREFIX}dues`,
  /** Id of the entry that has an identifier. */
  identifiers: `${PREFIX}identifiers`,
  /** Names of facts by the time when the last of each ends. */
  ends: `${PREFIX}ends`,
  payment: (id: string) => `${PREFIX}payment:${id}`,
  /** Facts of a name by their ends. */
  facts: (name: string) => `${PREFIX}facts:${name}`,
  lease: (name: string) => `${PREFIX}lease:${name}`,
} as const

/** A program that Redis runs as one step: all of it happens, or nothing. */
export interface Script {
  readonly lua: string
  readonly keys: readonly string[]
  readonly values: readonly (string | number)[]
}

/** The program knows keys and values by their names here. */
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

/** A newer version may have come and migrated the store, or somebody may have emptied it. */
function guarded(...[keys, values, program]: Parameters<typeof script>): Script {
  const guard = "if redis.call('GET', format) ~= FORMAT then return redis.error_reply('FORMAT') end"
  return script({ format: KEYS.format, ...keys }, { FORMAT, ...values }, `${guard}\n${program}`)
}

/** Gives an empty store our format; the answer is the format of the store. */
export function settleFormat(): Script {
  return script(
    { format: KEYS.format },
    { FORMAT },
    `redis.call('SETNX', format, FORMAT)
     return redis.call('GET', format)`,
  )
}

/** What is kept of an entry; an empty text stands for what it does not have. */
export interface Stored {
  readonly id: string
  readonly stamp: string
  readonly json: string
  readonly age: string
  readonly bought: string
  readonly due: string
  readonly identifier: string
}

/** Answers with the entry in the way, if there is one. */
export function insert({ id, stamp, json, age, bought, due, identifier }: Stored): Script {
  const { ages, buyers, dues, identifiers } = KEYS
  return guarded(
    { payment: KEYS.payment(id), ages, buyers, dues, identifiers },
    { payments: KEYS.payment(''), id, stamp, json, age, bought, due, identifier },
    `local standing = redis.call('HGET', payment, 'json')
     local other = identifier ~= '' and redis.call('HGET', identifiers, identifier)
     if not standing and other then standing = redis.call('HGET', payments .. other, 'json') end
     if standing then return standing end
     redis.call('HSET', payment, 'json', json, 'stamp', stamp, 'identifier', identifier)
     redis.call('ZADD', ages, 0, age)
     redis.call('ZADD', buyers, 0, bought)
     if due ~= '' then redis.call('ZADD', dues, due, id) end
     if identifier ~= '' then redis.call('HSET', identifiers, identifier, id) end
     return false`,
  )
}

/** Answers 1, or 0 when the entry does not have the previous stamp any more. */
export function replace(previous: string, { id, stamp, json, due, identifier }: Stored): Script {
  const { dues, identifiers } = KEYS
  return guarded(
    { payment: KEYS.payment(id), dues, identifiers },
    { previous, id, stamp, json, due, identifier },
    `local standing = redis.call('HMGET', payment, 'stamp', 'identifier')
     if standing[1] ~= previous then return 0 end
     redis.call('HSET', payment, 'json', json, 'stamp', stamp, 'identifier', identifier)
     if due ~= '' then redis.call('ZADD', dues, due, id) else redis.call('ZREM', dues, id) end
     if standing[2] ~= identifier then redis.call('HDEL', identifiers, standing[2]) end
     return 1`,
  )
}

/** Answers 1, or 0 when the entry does not have the stamp any more. */
export function remove({ id, stamp, age, bought }: Stored): Script {
  const { ages, buyers, dues, identifiers } = KEYS
  return guarded(
    { payment: KEYS.payment(id), ages, buyers, dues, identifiers },
    { id, stamp, age, bought },
    `local standing = redis.call('HMGET', payment, 'stamp', 'identifier')
     if standing[1] ~= stamp then return 0 end
     redis.call('DEL', payment)
     redis.call('ZREM', ages, age)
     redis.call('ZREM', buyers, bought)
     redis.call('ZREM', dues, id)
     redis.call('HDEL', identifiers, standing[2])
     return 1`,
  )
}

export function remember(name: string, fact: string, until: number): Script {
  return guarded(
    { facts: KEYS.facts(name), ends: KEYS.ends },
    { name, fact, ending: until },
    `redis.call('ZADD', facts, ending, fact)
     redis.call('ZADD', ends, redis.call('ZRANGE', facts, -1, -1, 'WITHSCORES')[2], name)`,
  )
}

/** Answers with the facts of a name. Those that have ended are dropped, and some names of which all have. */
export function recall(name: string, now: number): Script {
  return guarded(
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

/** Answers with the fence and what was left, or with nothing when somebody else has the lease. */
export function lease(name: string, owner: string, now: number, until: number): Script {
  return guarded(
    { lease: KEYS.lease(name) },
    { owner, now, ending: until },
    `local held = redis.call('HMGET', lease, 'owner', 'end', 'fence', 'left')
     if held[1] and held[1] ~= owner and tonumber(held[2]) > tonumber(now) then return false end
     local fence = held[3]
     if held[1] ~= owner then fence = redis.call('HINCRBY', lease, 'fence', 1) end
     redis.call('HSET', lease, 'owner', owner, 'end', ending)
     return { fence, held[4] or '' }`,
  )
}

/** Does nothing when the fence is another one: somebody has taken the lease over. */
export function release(name: string, fence: number, left: string): Script {
  return guarded(
    { lease: KEYS.lease(name) },
    { fence, left },
    `if redis.call('HGET', lease, 'fence') ~= fence then return end
     redis.call('HSET', lease, 'owner', '', 'end', 0, 'left', left)`,
  )
}
