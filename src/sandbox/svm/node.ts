/** The process of a local Solana chain: `node.js MINT GENESIS_HASH [MILLISECONDS BETWEEN BLOCKS]`. */
import { randomBytes } from 'node:crypto'
import { Bank } from './bank.ts'
import { Faults } from './faults.ts'
import { rpcServer } from './rpc-server.ts'

const [mint = '', genesisHash = '', blockMs] = process.argv.slice(2)
const seed = randomBytes(32)
const bank = new Bank({ seed, mint, now: Date.now })
if (blockMs !== undefined) setInterval(() => bank.advance(), Number(blockMs))
const server = rpcServer({
  bank,
  faults: new Faults(),
  identity: seed.toString('hex'),
  genesisHash,
  blocks: blockMs === undefined ? 'with each transaction' : 'by time',
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (typeof address === 'object' && address !== null) console.log(`Listening on 127.0.0.1:${address.port}`)
})
