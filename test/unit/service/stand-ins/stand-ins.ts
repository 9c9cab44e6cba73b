import t from 'tap'
import { GAMES, HARDWARE } from '../../../../src/service/stand-ins/games.ts'
import { standIns } from '../../../support/service/sources.ts'

t.test('keeps serving after a malformed request', async (t) => {
  const url = await standIns(t)
  const get = async (path: string) => (await fetch(url + path)).status
  t.equal(await get('/'), 404)
  t.equal(await get('/elsewhere/search/results/'), 404)
  t.equal(await get('/steam-store/nothing'), 404)
  t.equal(await get('/steam-api/IStoreBrowseService/GetItems/v1/?input_json={'), 400)
  t.equal(await get('/steam-api/IStoreBrowseService/GetItems/v1/?input_json={"ids":7}'), 400)
  t.equal(await get('/steam-api/IStoreBrowseService/GetItems/v1/?input_json=null'), 200)
  t.equal(await get('/steam-store/search/results/?cc=DE'), 200)
})

t.test('leaves the weekly chart empty without a data request, as the real one does', async (t) => {
  const url = await standIns(t)
  const input = encodeURIComponent(JSON.stringify({ country_code: 'DE', data_request: {} }))
  const reply = await fetch(
    `${url}/steam-api/IStoreTopSellersService/GetWeeklyTopSellers/v1/?input_json=${input}`,
  )
  t.same(await reply.json(), { response: {} })
})

t.test('gives invented games ids that are free in the real store', async (t) => {
  const games = [...GAMES, HARDWARE]
  t.ok(GAMES.length >= 30)
  t.equal(new Set(games.map(({ appid }) => appid)).size, games.length)
  t.ok(games.every(({ appid }) => appid > 4_000_000_000 && appid <= 4_294_967_295))
})
