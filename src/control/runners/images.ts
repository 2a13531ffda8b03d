// Which images each runner has, as far as control has heard.
import type { Piece, Sql } from '../storage/database.ts'

export const addToRunner = async (sql: Sql, runnerId: string, name: string): Promise<void> => {
  await sql`
    update runners set images = array_append(images, ${name}) where id = ${runnerId} and not ${name} = any(images)`
}

export const takeFromRunner = async (sql: Sql, runnerId: string, name: string): Promise<void> => {
  await sql`
    update runners set images = array_remove(images, ${name}) where id = ${runnerId} and ${name} = any(images)`
}

/** Until they say that they have it. */
export const takeFromRunners = async (sql: Sql, name: string): Promise<void> => {
  await sql`update runners set images = array_remove(images, ${name}) where ${name} = any(images)`
}

/** A statement for one that has just found the names: no sandbox is placed there for the sake of these images. */
export const takeFromAllRunners = (sql: Sql, names: Piece): Piece => sql`
  update runners set images = array(select unnest(images) except ${names})
  where images && array(${names})`
