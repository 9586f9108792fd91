require "set"

module Shapes
  class Box < Base
    SIZE = 3

    def initialize(value, key: 1)
      @value = value
      super(value)
    end

    def self.build(*items)
      items.each { |item| item.run(1) }
      new(items)
    end

    def area
      return 0 unless @value
      total = 0
      while total < 3
        total += 1
        next if total == 2
      end
      if check(total) then total -= 1 elsif other?(total) then total = 2 else total = 1 end
      begin
        File.open("a") do |f|
          f.read
        end
      rescue IOError, TypeError => e
        raise "bad #{e.message}"
      ensure
        close
      end
      case total
      when 1, 2 then one(total)
      else two
      end
    end
  end
end
